export { localSkills, type LocalSkillsOptions } from './local-skills.ts';

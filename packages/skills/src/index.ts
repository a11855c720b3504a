export type { SkillMatcher } from './matcher.ts';
export { SkillManagerCapability, type SkillManagerOptions } from './skill-manager-capability.ts';

export {
  defaultSkillFolders,
  type DefaultFolders,
  type DefaultFoldersOptions,
  type SkillConvention,
} from './default-folders.ts';
export { localSkills, type LocalSkillsOptions } from './local-skills.ts';
export { packageSkills, type PackageSkillsOptions } from './package-skills.ts';

export {
  activateSkill,
  deactivateSkill,
  type ActivationOptions,
  type SkillReference,
} from './activations.ts';
export { revokeConsent, skillConsents, type SkillConsent } from './consents.ts';
export type { SkillMatcher } from './matcher.ts';
export { memorySkills, type MemorySkill, type MemorySkillsOptions } from './memory-skills.ts';
export { SkillManagerCapability, type SkillManagerOptions } from './skill-manager-capability.ts';
export type { SkillMode, SkillModes } from './skill-modes.ts';

export { CombinedCapability } from './combined-capability.ts';
export type { InspectedCapability } from './inspection.ts';
export {
  ExtensionRegistry,
  type RegistrationHandle,
  type RegistryOptions,
  type SessionActivity,
  type ViewOptions,
} from './registry.ts';
export { approvedTools, approveTool, revokeTool } from './session-approvals.ts';
export type { NameFilter, ViewFilter } from './viewer.ts';

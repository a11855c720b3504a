export { CombinedCapability } from './combined-capability.ts';
export {
  ExtensionRegistry,
  type InspectedCapability,
  type RegistrationHandle,
  type RegistryOptions,
  type SessionActivity,
  type ViewOptions,
} from './registry.ts';
export type { NameFilter, ViewFilter } from './viewer.ts';

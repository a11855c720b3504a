export {
  CapabilityName,
  type Action,
  type CapabilityNameBackend,
  type CapabilityNameOptions,
} from './capability-name.ts';

export type { HostConfig } from './config.ts';
export { formatProblems } from './format-problems.ts';
export { createHost, type Host, type HostInspection, type HostOptions } from './host.ts';
export type {
  Agent,
  InspectedSession,
  OpenSessionOptions,
  Session,
  SessionViewOptions,
} from './session.ts';

export type { AgentConfig, FolderConfig, HostConfig, NamePatterns } from './config-schema.ts';
export { formatProblems } from './format-problems.ts';
export { createHost, type Host, type HostInspection, type HostOptions } from './host.ts';
export type { InputHandler, InputRequest } from './inputs.ts';
export type { Logger } from './insight.ts';
export type { McpServerEntry } from './server-entry.ts';
export type {
  Agent,
  InspectedSession,
  OpenSessionOptions,
  Session,
  SessionViewOptions,
} from './session.ts';
export type { InspectedTrust } from './trust.ts';

export type { AgentConfig, FolderConfig, HostConfig, NamePatterns } from './config-schema.ts';
export { formatProblems } from './format-problems.ts';
export { createHost, type Host, type HostInspection, type HostOptions } from './host.ts';
export type { InputHandler, InputRequest } from './inputs.ts';
export type { Logger } from './insight.ts';
export type { McpServerEntry } from './server-entry.ts';
export type { InspectedSession, OpenSessionOptions, Session } from './session.ts';
export type { Agent, SessionViewOptions, SpawnOptions, SubAgent } from './sub-agent.ts';
export type { InspectedTrust } from './trust.ts';

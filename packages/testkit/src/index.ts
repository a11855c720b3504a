// What is listed here is public. Everything else is not.
export { scriptedServer, type ScriptedServer, type ScriptedServerOptions } from './scripted-server.ts';
export type { ScriptedPrompt, ScriptedResource } from './scripted-session.ts';
export type { Misbehaviour, ScriptedAnswer, ScriptedCall, ScriptedTool } from './scripted-tool.ts';

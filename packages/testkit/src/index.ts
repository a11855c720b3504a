// What is listed here is public. Everything else is not.
export { testContext, type TestContext, type TestContextOptions } from './compile-context.ts';
export type { AuthorizationMisbehaviour } from './authorization-misbehaviour.ts';
export {
  authorizationServer,
  type AuthorizationRequest,
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type GrantType,
} from './authorization-server.ts';
export {
  fakeView,
  type FakeCall,
  type FakeView,
  type FakeViewContents,
  type FakeViewOptions,
} from './fake-view.ts';
export type { OAuthClient, OAuthClientDocument } from './oauth-clients.ts';
export type { AccessGrant } from './oauth-grants.ts';
export type { Protection, ProtectionMisbehaviour } from './protection.ts';
export {
  suiteTests,
  type Ended,
  type Making,
  type Requirement,
  type Skip,
  type Suite,
  type SuiteOptions,
  type SuiteTest,
} from './requirement.ts';
export {
  scriptedServer,
  type ScriptedServer,
  type ScriptedServerOptions,
} from './scripted-server.ts';
export type { ScriptedMethod, ScriptedPrompt, ScriptedResource } from './scripted-session.ts';
export type { Misbehaviour, ScriptedAnswer, ScriptedCall, ScriptedTool } from './scripted-tool.ts';
export type { ServedSkill } from './served-skill.ts';
export type { SkillMisbehaviour } from './skill-misbehaviour.ts';
export type { SkillsGeneration, SkillsMisbehaviour } from './skills-generation.ts';
export { skillsServer, type SkillsServer, type SkillsServerOptions } from './skills-server.ts';
export type {
  AdapterSubject,
  ModelCall,
  ModelRequest,
  ModelResult,
  ModelScript,
  ScriptedAgent,
} from './suites/adapter-subject.ts';
export { adapterSuite } from './suites/adapter-suite.ts';
export { capabilitySuite, type CapabilitySubject } from './suites/capability-suite.ts';
export { changeSuite, type ChangeSubject } from './suites/change-suite.ts';
export { commandSuite, type CommandSubject } from './suites/command-suite.ts';
export { mcpSuite, type McpSubject, type ToolCall } from './suites/mcp-suite.ts';
export { providerSuite, type ProviderSubject } from './suites/provider-suite.ts';
export { skillSuite, type SkillSubject } from './suites/skill-suite.ts';

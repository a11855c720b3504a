// What is listed here is public. Everything else is not.
export type { ActingSkill, ApprovalDecision, ApprovalPolicy, ApprovalRequest } from './approval.ts';
export { assignArguments, type AssignedArguments } from './assign-arguments.ts';
export type {
  Capability,
  CapabilityStatus,
  CompileContext,
  InstructionBlock,
  PeerQuery,
  SessionState,
  TurnContext,
  TurnContribution,
} from './capability.ts';
export type { ChangeEvent, ChangeKind, ChangeObservable } from './change-observable.ts';
export {
  changeSource,
  listen,
  Pending,
  type ChangeSource,
  type EmitChange,
} from './change-source.ts';
export type {
  CommandArgument,
  CommandArguments,
  CommandEntry,
  CommandPrompt,
  CommandResource,
  CommandRouter,
  PeerCommand,
  ResolvedCommand,
} from './command-resource.ts';
export type {
  AcquireOptions,
  CompleteOptions,
  ConnectionProvider,
  ConnectionStatus,
  HttpServerConfig,
  InjectedServerConfig,
  Lease,
  Listing,
  McpClient,
  PromptEntry,
  RequestOptions,
  ServerConfig,
  ServerFactory,
  ServerInfo,
  ServerOptions,
  ServerRequestHandlers,
  StdioServerConfig,
  ToolCallOptions,
} from './connection.ts';
export {
  isMediaPart,
  isResourceLinkPart,
  isResourcePart,
  isTextPart,
  type ContentPart,
  type MediaPart,
  type PromptMessage,
  type ResourceLinkPart,
  type ResourcePart,
  type TextPart,
  type UnknownPart,
} from './content.ts';
export { compositionOf, type ComposedCapability } from './composition.ts';
export {
  CircularCompositionError,
  PatchbayError,
  toPatchbayError,
  type PatchbayCode,
  type PatchbayErrorOptions,
} from './errors.ts';
export {
  isChangeObservable,
  isCommandResource,
  isResourceProvider,
  isSkillResource,
  isToolSource,
  missingMethods,
  type AnyCapability,
} from './guards.ts';
export { IdleTimer } from './idle-timer.ts';
export type { Json, JsonSchema } from './json.ts';
export type {
  McpResource,
  ResourceEntry,
  ResourceProvider,
  ResourceTemplate,
} from './mcp-resource.ts';
export { problemFrom, type Problem } from './problem.ts';
export {
  describeScope,
  normalizeScope,
  scopeCovers,
  scopeDepth,
  type Identity,
  type RegistrationScope,
  type Scope,
} from './scope.ts';
export type { AssertionRequest, ServerAuthorization } from './server-authorization.ts';
export type { ServedFile, ServedFileContent, ServedSkill } from './served-skill.ts';
export { servesSkills } from './served-skill.ts';
export { sha256Hex } from './sha256.ts';
export type {
  ActiveSkill,
  EmbeddedServer,
  OpenSkill,
  PeerSkill,
  ServedContent,
  SkillEntry,
  SkillFile,
  SkillResource,
} from './skill-resource.ts';
export { exposedToolName, RESERVED_TOOL_NAMES, type ToolId } from './tool-name.ts';
export { Stopper, stopBy, withSignal, type Stop } from './stop.ts';
export {
  defineTool,
  textResult,
  toolsFromSource,
  toToolResult,
  type CallContext,
  type Progress,
  type Tool,
  type ToolAnnotations,
  type ToolDefinition,
  type ToolOptions,
  type ToolResult,
  type ToolReturn,
  type ToolSource,
} from './tool.ts';
export {
  traced,
  type CallTrace,
  type ChangeTrace,
  type CompileTrace,
  type ConnectTrace,
  type Outcome,
  type TraceEvent,
  type TraceListener,
} from './trace.ts';
export type { TrustPolicy, TrustRequest } from './trust.ts';
export type {
  ArgumentCheck,
  ArgumentValidator,
  CallOptions,
  CallTool,
  CompiledView,
  CompileOptions,
  ExtensionView,
  ResourceView,
  TurnInput,
  TurnStep,
  PrepareInput,
  TurnView,
} from './view.ts';

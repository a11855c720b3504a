export { aiSdk, type AiSdkExtensions, type AiSdkOptions } from './ai-sdk.ts';
export { commands } from './commands.ts';
export type { Instructions } from './instructions.ts';
export { resource, type ResourceOptions } from './resource.ts';
export type { AnyPrepareStep, StepOptions, StepSettings } from './run.ts';
export { ToolCallError } from './tool-call-error.ts';
export type { KnownTools, OutputSchemas, TypedTools } from './typed-output.ts';

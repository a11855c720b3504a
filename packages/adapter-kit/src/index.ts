export { createArgumentValidator, type ArgumentValidatorOptions } from './argument-validator.ts';
export { planCommand, type CommandOptions, type PlannedMessage } from './command-prompt.ts';
export { errorText } from './error-text.ts';
export { instructionText, type InstructionText } from './instruction-text.ts';
export { saidIn } from './is-said.ts';
export { createProblemReport, type ProblemReport } from './problem-report.ts';
export {
  createProviderSchemas,
  providerSchema,
  type ProviderSchema,
  type ProviderSchemaOptions,
  type ProviderSchemas,
} from './provider-schema.ts';
export { planResult, type PlannedMedia, type PlanOptions, type ResultPlan } from './result-plan.ts';
export { withoutStrictNulls } from './strict-schema.ts';
export { isDeferrable, tooManyTools, TOOL_LIMIT } from './tool-limit.ts';
export { createToolValidator, type ToolValidator } from './tool-validator.ts';

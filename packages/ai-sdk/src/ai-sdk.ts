import {
  createProblemReport,
  createToolValidator,
  isDeferrable,
  TOOL_LIMIT,
  tooManyTools,
  type PlanOptions,
} from '@patchbay/adapter-kit';
import {
  PatchbayError,
  type CallOptions,
  type ExtensionView,
  type Problem,
  type ServerRequestHandlers,
  type Tool as PatchbayTool,
  type TurnView,
} from '@patchbay/protocols';
import type { ModelMessage, PrepareStepFunction, Tool, ToolSet } from 'ai';

import { userText, type Instructions } from './instructions.ts';
import { LiveTools, type Offer } from './live-tools.ts';
import { makeTombstone, makeTool, type ToolHost } from './make-tool.ts';
import { noticeMajor, type Major } from './major.ts';
import { AnsweredCalls, approvalOf, toolsNamedIn, toolsWithApproval } from './open-approvals.ts';
import { Run, type AnyPrepareStep, type StepOptions, type StepSettings } from './run.ts';
import { ToolSchema } from './tool-schema.ts';
import type { KnownTools, OutputSchemas } from './typed-output.ts';

/** What {@link aiSdk} takes. */
export interface AiSdkOptions<
  OWN extends ToolSet = ToolSet,
  OUTPUTS extends OutputSchemas = OutputSchemas,
> extends PlanOptions {
  /** The program's own system prompt; it goes first. An agent's own `instructions` take its place. */
  readonly instructions?: Instructions;
  /** The program's own tools, for `generateText` and `streamText`. An agent's own `tools` are taken from the agent. */
  readonly tools?: OWN;
  /**
   * Of tools that the program knows by name: their output is the structured content of their results, checked and typed by
   * these, and the model reads it as JSON. One that does not fit is an error of the tool. Other tools give the whole result.
   */
  readonly outputSchemas?: OUTPUTS;
  /** The program's own `prepareStep`; what it returns is kept. An agent's own one is taken from the agent. */
  readonly prepareStep?: PrepareStepFunction<Record<string, Tool>>;
  /** Ask for strict mode where a tool's schema can be said so. Default: false. */
  readonly strict?: boolean;
  /** Signs of life of a running call become preliminary tool results. Default: false. */
  readonly progress?: boolean;
  /**
   * Where a view has more tools than this, they are deferred: a model finds them with the `toolSearch()` of ai 7, which the
   * program has to give as one of its tools. Without it, and in 6, a problem says so. Default 128.
   */
  readonly deferAbove?: number;
  /** Answers to what a server asks in the middle of a call, instead of the pool's. Only what those answer is asked at all. */
  readonly handlers?: ServerRequestHandlers;
  /** Default: a warning of the process. */
  readonly onProblem?: (problem: Problem) => void;
}

/** A view as what `ToolLoopAgent`, `generateText` and `streamText` take: spread it into their settings. */
export interface AiSdkExtensions<TOOLS extends ToolSet = ToolSet> {
  /** Live: changed in place at each step. Typed are those that the program knows; before the first step there are only its own. */
  readonly tools: TOOLS;
  readonly prepareStep: (options: StepOptions) => Promise<StepSettings<keyof TOOLS & string>>;
  /** For agents: gives each run a turn and tools of its own, and takes in the agent's own settings. */
  readonly prepareCall: <SETTINGS extends object>(settings: SETTINGS) => Promise<SETTINGS>;
  /**
   * For `convertToModelMessages(messages, { tools })` before `generateText` or `streamText`: every tool of now, and for
   * those that the conversation names and that are gone, something that answers their open calls.
   */
  readonly toolsForMessages: (messages?: readonly object[]) => Promise<ToolSet>;
}

/**
 * A view as what the Vercel AI SDK takes, 6 and 7. Tools, skills and instructions are seen anew at each step of a run;
 * parallel runs of one agent do not mix. Nothing is connected before the first step.
 */
export function aiSdk<OWN extends ToolSet = ToolSet, OUTPUTS extends OutputSchemas = OutputSchemas>(
  view: ExtensionView,
  options: AiSdkOptions<OWN, OUTPUTS> = {},
): AiSdkExtensions<KnownTools<OWN, OUTPUTS>> {
  const { instructions, prepareStep: ownPrepareStep } = options;
  const ownTools: ToolSet = options.tools ?? {};
  const outputSchemas: OutputSchemas = options.outputSchemas ?? {};
  const report = createProblemReport(options.onProblem);
  const major: Major = { isSeven: false };
  /** By the array that the AI SDK hands to `prepareStep` at every step of one run. */
  const bySteps = new WeakMap<object, Run>();
  /** By the array that it hands to `execute` after that step. */
  const byMessages = new WeakMap<object, Run>();
  const made = new WeakMap<PatchbayTool, ToolSet[string]>();
  /** By the list that a view gives for as long as nothing changes. */
  const offers = new WeakMap<
    readonly PatchbayTool[],
    { readonly defers: boolean; readonly offer: Offer }
  >();
  const deferred = new WeakMap<object, ToolSet[string]>();
  /** Not a copy, in which the program may have changed something. */
  const isOurs = (one: ToolSet[string] | undefined): boolean => {
    const tool = ToolSchema.toolOf(one?.inputSchema);
    const ours = tool && made.get(tool);
    return ours !== undefined && (ours === one || deferred.get(ours) === one);
  };
  const answered = new AnsweredCalls();

  /** Outside of a step that we prepared (a call that was approved meanwhile): a turn for this alone. */
  const inTurn = async <T>(
    messages: readonly ModelMessage[],
    use: (turn: TurnView) => Promise<T>,
  ): Promise<T> => {
    const run = byMessages.get(messages);
    if (run !== undefined) {
      const turn = run.turn();
      // Where the model thought longer than a turn may rest, what the turn hides is asked anew.
      if (turn.current() === undefined) await turn.prepare();
      return use(turn);
    }
    const text = userText(messages);
    const turn = view.beginTurn(text === undefined ? {} : { userText: text });
    try {
      await turn.prepare();
      return await use(turn);
    } finally {
      await turn.close();
    }
  };

  const host: ToolHost = {
    major,
    plan: options,
    strict: options.strict === true,
    progress: options.progress === true,
    validator: createToolValidator(report),
    ...(options.handlers === undefined ? {} : { handlers: options.handlers }),
    outputOf: (name) => (Object.hasOwn(outputSchemas, name) ? outputSchemas[name] : undefined),
    report,
    call: async (name, args, messages, call) => {
      if (byMessages.get(messages)?.allows(name) === false) throw inactive(name);
      const { callId = '' } = call;
      const approvalId = approvalOf(messages, callId);
      const make = (how: CallOptions) => inTurn(messages, (turn) => turn.callTool(name, args, how));
      return approvalId === undefined
        ? make(call)
        : answered.once(messages, callId, () => make({ ...call, approved: true, approvalId }));
    },
    needsApproval: async (name, args, { toolCallId, messages }) => {
      // Asked again when the answer is there: it was needed.
      if (approvalOf(messages, toolCallId) !== undefined) return true;
      if (byMessages.get(messages)?.allows(name) === false) return false;
      // Where it cannot be asked the call cannot be made either, and says why.
      const decision = await inTurn(messages, (turn) => turn.approval(name, args)).catch(
        () => 'allow' as const,
      );
      return decision === 'ask' || (typeof decision === 'object' && 'ask' in decision);
    },
  };

  const { deferAbove = TOOL_LIMIT } = options;
  /** The same object for the same tool: what is made of it is kept by it. */
  const deferring = (one: ToolSet[string]): ToolSet[string] => {
    let later = deferred.get(one);
    if (later === undefined) {
      // A field of 7, which 6 does not look at.
      const marked: object = { ...one, deferLoading: true };
      later = marked as ToolSet[string];
      deferred.set(one, later);
    }
    return later;
  };

  /** `canSearch` is known where they are made for a step; elsewhere nobody is shown them. */
  const make = (tools: readonly PatchbayTool[], canSearch?: boolean): Offer => {
    const isMany = tools.length > deferAbove;
    const defers = isMany && major.isSeven && canSearch === true;
    if (isMany && !defers && canSearch !== undefined) {
      const remedy = major.isSeven
        ? 'Give `search: toolSearch()` of ai as one of the tools, so that they are found when they are needed'
        : 'In ai 7 they can be deferred';
      report(tooManyTools(deferAbove, remedy));
    }
    const before = offers.get(tools);
    if (before?.defers === defers) {
      shared.learn(before.offer);
      return before.offer;
    }
    const offer = new Map<string, ToolSet[string]>();
    for (const tool of tools) {
      let one = made.get(tool);
      if (one === undefined) {
        one = makeTool(tool, host);
        made.set(tool, one);
      }
      offer.set(tool.definition.name, defers && isDeferrable(tool) ? deferring(one) : one);
    }
    offers.set(tools, { defers, offer });
    shared.learn(offer);
    return offer;
  };

  const step = async (run: Run, given: StepOptions): Promise<StepSettings> => {
    noticeMajor(major, given);
    const settings = await run.prepareStep(given);
    // 6 hands the messages of the step to `execute`, 7 the ones that were sent.
    for (const messages of [given.messages, settings.messages])
      if (messages) byMessages.set(messages, run);
    return settings;
  };

  const onClash = (name: string) => {
    const message = `The tool ${name} is not offered, because the program has a tool of its own of that name.`;
    report({ source: name, code: 'tool-name', message, severity: 'warning' });
  };
  const shared = new LiveTools(ownTools, onClash);
  const sharedStart = { live: shared, instructions, prepareStep: ownPrepareStep };

  const prepareStep = (given: StepOptions): Promise<StepSettings> => {
    let run = bySteps.get(given.steps);
    if (run === undefined) bySteps.set(given.steps, (run = new Run(view, sharedStart, make)));
    return step(run, given);
  };

  const tombstones = (names: readonly string[]): Offer =>
    new Map(names.map((name) => [name, makeTombstone(name, host)]));

  const extensions: AiSdkExtensions = {
    tools: shared.object,
    prepareStep,
    async prepareCall<SETTINGS extends object>(settings: SETTINGS) {
      const agent = settings as AgentSettings;
      const all = { ...agent.tools, ...ownTools };
      const own = Object.fromEntries(Object.entries(all).filter(([, tool]) => !isOurs(tool)));
      const open = tombstones(toolsWithApproval(agent.messages ?? []));
      const live = new LiveTools(own, onClash, new Map([...open, ...shared.known]));
      const ownStep = agent.prepareStep === prepareStep ? ownPrepareStep : agent.prepareStep;
      const { activeTools } = agent;
      const base = agent.instructions ?? instructions;
      const run = new Run(view, { live, prepareStep: ownStep, activeTools }, make);
      return {
        ...settings,
        ...(base === undefined ? {} : { instructions: base }),
        tools: live.object,
        prepareStep: (given: StepOptions) => step(run, given),
      };
    },
    async toolsForMessages(messages = []) {
      const { tools } = await view.compile();
      make(tools);
      const gone = toolsNamedIn(messages).filter((name) => !Object.hasOwn(shared.object, name));
      if (gone.length > 0) shared.learn(tombstones(gone));
      return shared.object;
    },
  };
  // Which tools the program knows is known to the compiler only.
  return extensions as unknown as AiSdkExtensions<KnownTools<OWN, OUTPUTS>>;
}

function inactive(name: string): PatchbayError {
  const message = `The tool "${name}" is not active at this step.`;
  return new PatchbayError('tool-hidden', message, { details: { tool: name } });
}

/** The settings of an agent that are composed with ours. */
interface AgentSettings {
  readonly tools?: ToolSet;
  readonly instructions?: Instructions;
  readonly prepareStep?: AnyPrepareStep;
  readonly activeTools?: readonly string[];
  readonly messages?: readonly ModelMessage[];
}

import type { BaseMessage, SystemMessage } from '@langchain/core/messages';
import type { ClientTool, ServerTool } from '@langchain/core/tools';
import {
  instructionText,
  isDeferrable,
  saidIn,
  TOOL_LIMIT,
  tooManyTools,
  type ProblemReport,
} from '@patchbay/adapter-kit';
import type { ExtensionView, Problem, Tool } from '@patchbay/protocols';

import type { FaceOf } from './face-tool.ts';
import { mediaPolicy, type MediaOption } from './media-policy.ts';
import { shapeMessages } from './model-messages.ts';
import { providerKind } from './provider-kind.ts';
import type { MediaOf } from './result-media.ts';
import { turnOfRun, type RunHook } from './run-turn.ts';
import { withSystemText } from './system-message.ts';

/** What the hook for model calls needs of its adapter. */
export interface ModelRequestSettings {
  readonly view: ExtensionView;
  readonly media: MediaOption;
  readonly faceOf: FaceOf;
  readonly mediaOf: MediaOf;
  readonly report: ProblemReport;
  /** With more tools than this, they carry `defer_loading`. */
  readonly deferAbove?: number | undefined;
  /** Every name that was ever offered. */
  readonly offered: Set<string>;
  /** Every name that was not, because the agent has a tool of that name. */
  readonly taken: Set<string>;
}

/** The parts of LangChain's model request that are read or replaced. */
export interface ShapedRequest extends RunHook {
  readonly model: object;
  readonly messages: BaseMessage[];
  readonly tools: (ClientTool | ServerTool)[];
  readonly systemMessage: SystemMessage;
}

/** The request of one model call, from one snapshot of the view. */
export async function modelRequest<R extends ShapedRequest>(
  request: R,
  settings: ModelRequestSettings,
): Promise<R> {
  const { view, media, mediaOf, faceOf, report, offered, taken } = settings;
  const { model, messages, tools, systemMessage } = request;
  const { signal } = request.runtime;
  const [kind, step] = await Promise.all([
    providerKind(model),
    turnOfRun(request, view).prepare({
      isSaid: saidIn(messages.map(({ content }) => content)),
      ...(signal === undefined ? {} : { signal }),
    }),
  ]);
  const { deferAbove = Infinity } = settings;
  const isMany = step.tools.length > Math.min(deferAbove, TOOL_LIMIT);
  const defers = step.tools.length > deferAbove;
  if (isMany && !defers) report(tooManyTools(TOOL_LIMIT, REMEDY));
  const own = new Set(tools.map(nameOf));
  const faces: ClientTool[] = [];
  for (const tool of step.tools) {
    const { name } = tool.definition;
    if (own.has(name)) {
      taken.add(name);
      report(clash(tool));
      continue;
    }
    offered.add(name);
    faces.push(faceOf(tool, kind, defers && isDeferrable(tool)));
  }
  const texts = instructionText(step.instructions);
  return {
    ...request,
    tools: [...tools, ...faces],
    systemMessage: withSystemText(systemMessage, [texts.static, texts.dynamic]),
    messages: shapeMessages(messages, mediaPolicy(media, kind), mediaOf),
  };
}

const REMEDY =
  'Set `deferAbove` and put `providerToolSearchMiddleware()` of langchain behind this middleware, so that they are found when they are needed';

/** A tool of a provider's own is a plain object, perhaps without a name. */
function nameOf(tool: ClientTool | ServerTool): unknown {
  return tool['name'];
}

/** LangChain ends a run in which a static tool is replaced, so the agent's own one stays. */
function clash({ id, definition: { name } }: Tool): Problem {
  return {
    source: id.capability,
    code: 'tool-name',
    severity: 'warning',
    message: `The tool "${name}" is not offered, because the agent already has a tool of this name. Rename the agent's tool, or give the capability another id.`,
  };
}

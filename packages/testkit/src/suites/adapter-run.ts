import {
  defineTool,
  type CallContext,
  type ExtensionView,
  type Tool,
  type ToolReturn,
} from '@patchbay/protocols';

import { ensure, show, within } from '../expectation.ts';
import { fakeView, type FakeViewContents } from '../fake-view.ts';
import type { AdapterSubject, ModelCall, ModelRequest, ModelResult } from './adapter-subject.ts';

type Call = (
  args: Readonly<Record<string, unknown>>,
  context: CallContext,
) => ToolReturn | Promise<ToolReturn>;

/** A tool that takes a number `a`. */
export const tool = (name: string, run: Call): Tool =>
  defineTool({
    capability: 't',
    name,
    description: name,
    inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
    call: run,
  });

/** A tool that says that it ran. */
export const says = (name: string): Tool => tool(name, () => `${name} ran`);

/** A call of one of them, with its name as its id. */
export const call = (name: string, args: Readonly<Record<string, unknown>> = {}): ModelCall => ({
  id: name,
  name: `t__${name}`,
  args,
});

/** One run over a view, with what the model was sent. */
export async function runOver(
  subject: AdapterSubject,
  view: ExtensionView,
  script: (
    request: ModelRequest,
    at: number,
  ) => readonly ModelCall[] | Promise<readonly ModelCall[]>,
): Promise<readonly ModelRequest[]> {
  const requests: ModelRequest[] = [];
  const agent = subject.agent(view, (request) => {
    requests.push(request);
    return script(request, requests.length - 1);
  });
  await within(agent({ userText: 'go' }), 'The run');
  return requests;
}

/** One run over a view of these contents, one array of calls per step. */
export const run = (
  subject: AdapterSubject,
  contents: FakeViewContents,
  steps: readonly (readonly ModelCall[])[],
): Promise<readonly ModelRequest[]> =>
  runOver(subject, fakeView(contents), (_, at) => steps[at] ?? []);

/** Calls these tools in one step; what the model was told. */
export async function resultsOf(
  subject: AdapterSubject,
  contents: FakeViewContents,
  names: readonly string[],
): Promise<ModelRequest['results']> {
  const requests = await run(subject, contents, [names.map((name) => call(name))]);
  return requests[1]?.results ?? {};
}

/** The model was told of an error that says this. */
export function isErrorWith(result: ModelResult | undefined, text: string): void {
  ensure(
    result?.isError === true && result.text.includes(text),
    `Expected an error that says ${show(text)}, the model was told ${show(result)}`,
  );
}

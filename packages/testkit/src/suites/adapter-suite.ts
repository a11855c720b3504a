import { defineTool, PatchbayError, textResult, type JsonSchema } from '@patchbay/protocols';

import { ensure, ensureEqual, ensureSettles, show, within } from '../expectation.ts';
import { fakeView } from '../fake-view.ts';
import type { Suite } from '../requirement.ts';
import { call, isErrorWith, resultsOf, run, runOver, says, tool } from './adapter-run.ts';
import type { AdapterSubject, ModelRequest } from './adapter-subject.ts';

const RUNS = 10;

/** A union at the top, a recursion, no type: what some providers refuse or drop. */
const ODD_SCHEMA: JsonSchema = {
  $defs: { Tree: { type: 'object', properties: { kid: { $ref: '#/$defs/Tree' } } } },
  anyOf: [
    { properties: { tree: { $ref: '#/$defs/Tree' } }, required: ['tree'] },
    { properties: { leaf: { const: 'green' } }, required: ['leaf'] },
  ],
};

/** What every adapter does. (DESIGN "A view is live and cheap", "Failure stays where it is", `ExtensionView`) */
export const adapterSuite: Suite<AdapterSubject> = {
  contract: 'Adapter',
  requirements: [
    {
      name: 'offers the tools and the instructions of the view',
      check: async (subject) => {
        const instructions = [{ source: 't', kind: 'static', text: 'Be kind.' }] as const;
        const requests = await run(subject, { tools: [says('b'), says('a')], instructions }, []);
        ensureEqual(requests[0]?.tools.toSorted(), ['t__a', 't__b'], 'The tools on offer');
        ensure(
          requests[0]?.instructions.includes('Be kind.') === true,
          `The instructions are not in ${show(requests[0]?.instructions)}`,
        );
      },
    },
    {
      name: 'hands arguments to a tool, and its result to the model',
      check: async (subject) => {
        const got: unknown[] = [];
        const add = tool('add', (args) => {
          got.push(args);
          return `${Number(args['a']) + 1}`;
        });
        const requests = await run(subject, { tools: [add] }, [[call('add', { a: 1 })]]);
        ensureEqual(got, [{ a: 1 }], 'What the tool was called with');
        ensureEqual(requests[1]?.results, { add: { text: '2', isError: false } }, 'The result');
      },
    },
    {
      name: 'tells a tool which call of the model it answers',
      check: async (subject) => {
        const ids: string[] = [];
        const counts = tool('counts', (_, { callId }) => `${ids.push(callId)}`);
        const calls = ['1st', '2nd'].map((id) => ({ ...call('counts'), id }));
        await run(subject, { tools: [counts] }, [calls]);
        ensureEqual(ids.toSorted(), ['1st', '2nd'], 'The ids of the calls');
      },
    },
    {
      name: 'shows arguments as an object whatever their schema is, and checks them as its author wrote it',
      check: async (subject) => {
        const got: unknown[] = [];
        const odd = defineTool({
          capability: 't',
          name: 'odd',
          inputSchema: ODD_SCHEMA,
          call: (args) => `${got.push(args)}`,
        });
        const right = [{ leaf: 'green' }, { tree: { kid: {} } }];
        const wrong = [{}, { leaf: 'red' }, { tree: { kid: 'no tree' } }];
        const calls = [...right, ...wrong].map((args, at) => ({
          ...call('odd', args),
          id: `${at}`,
        }));
        const requests = await run(subject, { tools: [odd] }, [calls]);
        const shown = requests[0]?.schemas['t__odd'];
        ensureEqual(shown?.['type'], 'object', 'The type that the model is shown');
        ensure(shown?.['anyOf'] === undefined, `There is a union at the top of ${show(shown)}`);
        ensureEqual(
          Object.keys(shown?.['properties'] ?? {}).toSorted(),
          ['leaf', 'tree'],
          'The properties that the model is shown',
        );
        ensureEqual(got, right, 'What the tool was called with');
        const failed = Object.values(requests[1]?.results ?? {}).filter(({ isError }) => isError);
        ensureEqual(failed.length, wrong.length, 'Calls that were refused');
      },
    },
    {
      name: 'offers at the next step what came, changed or went during a run',
      check: async (subject) => {
        const view = fakeView();
        const first = tool('a', () => {
          view.update({ tools: [first, says('b')] });
          return 'ok';
        });
        view.update({ tools: [first] });
        const requests = await runOver(subject, view, (_, at) => {
          if (at === 1) view.update({ tools: [says('b')] });
          return [[call('a')], [call('b')]][at] ?? [];
        });
        ensureEqual(
          requests.map(({ tools }) => tools.toSorted()),
          [['t__a'], ['t__a', 't__b'], ['t__b']],
          'The tools on offer, step by step',
        );
        ensureEqual(requests[2]?.results['b'], { text: 'b ran', isError: false }, 'The new tool');
      },
    },
    {
      name: 'keeps the order of the view: tools by name, static instructions before dynamic ones',
      check: async (subject) => {
        const requests = await run(
          subject,
          {
            tools: [says('c'), says('a'), says('b')],
            instructions: [
              { source: 't', kind: 'dynamic', text: 'Now.' },
              { source: 't', kind: 'static', text: 'Always.' },
            ],
          },
          [],
        );
        ensureEqual(requests[0]?.tools, ['t__a', 't__b', 't__c'], 'The tools on offer');
        const instructions = requests[0]?.instructions ?? '';
        const [always, now] = ['Always.', 'Now.'].map((text) => instructions.indexOf(text));
        ensure(
          always !== -1 && always! < now!,
          `Expected "Always." before "Now." in ${show(instructions)}`,
        );
      },
    },
    {
      name: 'gives the instructions of now at each step, and piles up nothing',
      check: async (subject) => {
        const view = fakeView();
        const saying = (text: string) => [{ source: 't', kind: 'dynamic', text }] as const;
        const turn = tool('turn', () => {
          view.update({ instructions: saying('Second.') });
          return 'ok';
        });
        view.update({ tools: [turn], instructions: saying('First.') });
        const requests = await runOver(subject, view, (_, at) => (at === 0 ? [call('turn')] : []));
        const found = requests.map(({ instructions }) =>
          ['First.', 'Second.'].filter((text) => instructions.includes(text)),
        );
        ensureEqual(found, [['First.'], ['Second.']], 'The instructions, step by step');
      },
    },
    {
      name: 'answers the model with an error, and goes on, when a tool throws',
      check: async (subject) => {
        const thrown = [
          tool('plain', () => {
            throw new TypeError('boom');
          }),
          tool('coded', () => {
            throw new PatchbayError('outcome-unknown', 'It may have run.');
          }),
        ];
        const results = await resultsOf(subject, { tools: thrown }, ['plain', 'coded']);
        isErrorWith(results['plain'], 'boom');
        isErrorWith(results['coded'], 'It may have run.');
      },
    },
    {
      name: 'answers the model with what a tool calls an error, marked as one',
      check: async (subject) => {
        const failing = tool('failing', () => textResult('No such city.', { isError: true }));
        const results = await resultsOf(subject, { tools: [failing] }, ['failing']);
        isErrorWith(results['failing'], 'No such city.');
      },
    },
    {
      name: 'lets the other calls of a step go on when one of them fails',
      check: async (subject) => {
        let failed: () => void = () => undefined;
        const failing = new Promise<void>((resolve) => (failed = resolve));
        const bad = tool('bad', () => {
          setImmediate(failed);
          throw new Error('boom');
        });
        const slow = tool('slow', async (_, { signal }) => {
          await failing;
          await new Promise(setImmediate);
          return signal?.aborted === true ? 'aborted' : 'finished';
        });
        const results = await resultsOf(subject, { tools: [bad, slow] }, ['bad', 'slow']);
        isErrorWith(results['bad'], 'boom');
        ensureEqual(results['slow'], { text: 'finished', isError: false }, 'Its neighbour');
      },
    },
    {
      name: 'shows a text for a result without any, and cuts one that is huge, and says so',
      check: async (subject) => {
        const tools = [
          tool('empty', () => ({ content: [] })),
          tool('huge', () => 'x'.repeat(1_000_000)),
        ];
        const { empty, huge } = await resultsOf(subject, { tools }, ['empty', 'huge']);
        ensure(empty?.isError === false && empty.text !== '', `Nothing is ${show(empty)}`);
        const length = huge?.text.length ?? 0;
        ensure(length > 1000 && length < 200_000, `A million characters are ${length}`);
        ensure(/1000000/.test(huge?.text ?? ''), 'It is not said how long the result is');
      },
    },
    {
      name: 'answers bad arguments with what is wrong, without running the tool',
      check: async (subject) => {
        let ran = 0;
        const strict = tool('strict', () => `run ${++ran}`);
        const requests = await run(subject, { tools: [strict] }, [
          [call('strict', { a: 'no number' })],
        ]);
        ensureEqual(ran, 0, 'How often the tool ran');
        isErrorWith(requests[1]?.results['strict'], 'a');
      },
    },
    {
      name: 'answers a call of a tool that went away since it was offered',
      check: async (subject) => {
        const view = fakeView({ tools: [says('gone'), says('stays')] });
        const requests = await runOver(subject, view, (_, at) => {
          if (at > 0) return [];
          view.update({ tools: [says('stays')] });
          return [call('gone'), call('stays')];
        });
        isErrorWith(requests[1]?.results['gone'], 't__gone');
        ensureEqual(requests[1]?.results['stays']?.isError, false, 'That its neighbour failed');
      },
    },
    {
      name: 'neither offers nor runs a tool that is hidden in this turn',
      check: async (subject) => {
        let ran = 0;
        const secret = tool('secret', () => `run ${++ran}`);
        const contents = { tools: [secret, says('open')], turn: () => ({ hide: ['t__secret'] }) };
        const requests = await run(subject, contents, [[call('secret'), call('open')]]);
        ensureEqual(requests[0]?.tools, ['t__open'], 'The tools on offer');
        ensureEqual(ran, 0, 'How often the hidden tool ran');
        ensureEqual(requests[1]?.results['secret']?.isError, true, 'That the call is refused');
        ensureEqual(requests[1]?.results['open']?.isError, false, 'That its neighbour failed');
      },
    },
    {
      name: 'goes on with a turn that ended while the model thought: what it hides stays hidden',
      check: async (subject) => {
        const view = fakeView({
          tools: [says('secret'), says('open')],
          turn: (userText) => ({ hide: userText === 'go' ? ['t__secret'] : [] }),
        });
        const requests = await runOver(subject, view, async (_, at) => {
          await view.endTurns();
          return at === 0 ? [call('secret'), call('open')] : [];
        });
        ensureEqual(requests.length, 2, 'Requests to the model');
        ensureEqual(requests[1]?.results['secret']?.isError, true, 'That the call is refused');
        ensureEqual(
          requests[1]?.results['open'],
          { text: 'open ran', isError: false },
          'Its neighbour',
        );
      },
    },
    {
      name: 'does not mix what runs of one agent at the same time see',
      check: async (subject) => {
        const requests: ModelRequest[] = [];
        const view = fakeView({
          tools: [says('left'), says('right')],
          turn: (userText) => ({
            hide: [userText === 'left' ? 't__right' : 't__left'],
            instructions: [{ source: 't', kind: 'dynamic', text: `This is ${userText}.` }],
          }),
        });
        const agent = subject.agent(view, (request) => {
          requests.push(request);
          const answered = Object.keys(request.results).length > 0;
          return answered ? [] : [call('left'), call('right')];
        });
        const sides = Array.from({ length: RUNS }, (_, at) => (at % 2 === 0 ? 'left' : 'right'));
        await within(Promise.all(sides.map((userText) => agent({ userText }))), 'The runs');
        ensureEqual(requests.length, RUNS * 2, 'Requests to the model');
        for (const { userText, tools, instructions, results } of requests) {
          const other = userText === 'left' ? 'right' : 'left';
          ensureEqual(tools, [`t__${userText}`], `The tools on offer to ${userText}`);
          ensure(
            instructions.includes(`This is ${userText}.`) && !instructions.includes(other),
            `The instructions for ${userText} are ${show(instructions)}`,
          );
          if (Object.keys(results).length === 0) continue;
          ensureEqual(results[userText]?.isError, false, `That ${userText} failed for ${userText}`);
          ensureEqual(results[other]?.isError, true, `That ${other} was refused to ${userText}`);
        }
      },
    },
    {
      name: 'ends a run that is aborted: its tool is told, the model is not asked again',
      check: async (subject) => {
        const controller = new AbortController();
        let told = false;
        const waits = tool('waits', async (_, { signal }) => {
          setImmediate(() => controller.abort());
          await new Promise<void>((resolve) => {
            if (signal === undefined) return;
            if (signal.aborted) resolve();
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
          told = true;
          return 'too late';
        });
        let asked = 0;
        const agent = subject.agent(fakeView({ tools: [waits] }), () =>
          ++asked === 1 ? [call('waits')] : [],
        );
        await ensureSettles(agent({ userText: 'go', signal: controller.signal }), 'The run');
        ensure(told, 'The tool was not told that the run is aborted');
        ensureEqual(asked, 1, 'Requests to the model');
      },
    },
  ],
};

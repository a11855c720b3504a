import { PatchbayError, textResult } from '@patchbay/protocols';

import { ensure, ensureEqual, ensureSettles, show, within } from '../expectation.ts';
import { fakeView } from '../fake-view.ts';
import type { Suite } from '../requirement.ts';
import { call, isErrorWith, resultsOf, run, runOver, says, tool } from './adapter-run.ts';
import type { AdapterSubject, ModelRequest } from './adapter-subject.ts';

const RUNS = 10;

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

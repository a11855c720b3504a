import type { ExtensionView } from '@patchbay/protocols';
import {
  generateText,
  jsonSchema,
  streamText,
  tool,
  ToolLoopAgent,
  type LanguageModel,
  type ToolSet,
} from 'ai';
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';

import { aiSdk, commands } from '../src/index.ts';

declare const view: ExtensionView;
declare const model: LanguageModel;

const own = tool({
  inputSchema: jsonSchema<{ city: string }>({ type: 'object' }),
  execute: ({ city }) => city.length,
});

/** Checked with the types of 7, and of 6 through `ai6/tsconfig.json`. */
describe('the types of the AI SDK', () => {
  it('take a view by spreading, without a cast', () => {
    const agent = new ToolLoopAgent({ model, ...aiSdk(view) });
    expectTypeOf(agent.tools).toExtend<ToolSet>();
    const instructed = new ToolLoopAgent({
      model,
      instructions: 'You are X.',
      ...aiSdk(view, { instructions: 'You are X.' }),
    });
    expectTypeOf(instructed.tools).toExtend<ToolSet>();
    expectTypeOf(generateText({ model, prompt: 'go', ...aiSdk(view) })).resolves.toHaveProperty(
      'text',
    );
    expectTypeOf(streamText({ model, prompt: 'go', ...aiSdk(view) }).text).toExtend<
      PromiseLike<string>
    >();
  });

  it('keep what is the program’s own', async () => {
    const extensions = aiSdk(view);
    const agent = new ToolLoopAgent({
      model,
      ...extensions,
      instructions: { role: 'system', content: 'You are X.' },
      tools: { ...extensions.tools, own },
      prepareStep: ({ stepNumber, messages }) => ({ temperature: stepNumber, messages }),
    });
    const messages = await commands(view, [{ role: 'user', content: '/review it' }]);
    await agent.generate({ messages });
    const { toolCalls } = await agent.generate({ prompt: 'go' });
    expectTypeOf(toolCalls[0]!.toolName).toExtend<string>();
    aiSdk(view, {
      tools: { own },
      prepareStep: ({ stepNumber }) => ({ activeTools: [`step-${stepNumber}`] }),
    });
  });

  it('type the results of tools that the program knows, its own and those of servers', async () => {
    const tools = { own };
    const outputSchemas = {
      weather__now: jsonSchema<{ temp: number }>({ type: 'object' }),
      crm__find: z.object({ names: z.array(z.string()) }),
    };
    const extensions = aiSdk(view, { tools, outputSchemas });
    const { toolResults } = await generateText({ model, prompt: 'go', ...extensions });
    for (const result of toolResults) {
      if (result.dynamic === true) expectTypeOf(result.output).toBeUnknown();
      else if (result.toolName === 'weather__now')
        expectTypeOf(result.output).toEqualTypeOf<{ temp: number }>();
      else if (result.toolName === 'crm__find')
        expectTypeOf(result.output).toEqualTypeOf<{ names: string[] }>();
      else expectTypeOf(result.output).toEqualTypeOf<number>();
    }
    const agent = new ToolLoopAgent({ model, ...extensions });
    for (const { toolResults: ofStep } of (await agent.generate({ prompt: 'go' })).steps)
      for (const result of ofStep)
        if (result.dynamic !== true && result.toolName === 'weather__now')
          expectTypeOf(result.output.temp).toBeNumber();
    // @ts-expect-error no schema of a tool
    aiSdk(view, { outputSchemas: { weather__now: 5 } });
  });

  it('infer the options and the output of an agent as they do without', async () => {
    const agent = new ToolLoopAgent({
      model,
      ...aiSdk(view),
      callOptionsSchema: jsonSchema<{ tenant: string }>({ type: 'object' }),
    });
    await agent.generate({ prompt: 'go', options: { tenant: 'acme' } });
    // @ts-expect-error the option is missing
    await agent.generate({ prompt: 'go', options: {} });
  });
});

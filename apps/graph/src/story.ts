import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { Command, MemorySaver } from '@langchain/langgraph';
import { fakeModel } from 'langchain';

import { startProcess } from './graph.ts';

/** A model of a script: it makes one call, then says what it was told to. */
const scripted = (name: string, args: Record<string, unknown>, last: string) =>
  fakeModel()
    .respond(
      new AIMessage({ content: '', tool_calls: [{ name, args, id: name, type: 'tool_call' }] }),
    )
    .respond(new AIMessage(last));

/** Asks, waits for a person, goes on in another process. `tell` hears what happens. */
export async function story(tell: (line: string) => void): Promise<readonly number[]> {
  const paid: number[] = [];
  // A real service has one in a database; this one stands for it.
  const checkpointer = new MemorySaver();
  {
    await using first = startProcess(
      {
        buyer: scripted('shop__price', {}, 'It costs 42.'),
        payer: scripted('shop__pay', { amount: 42 }, 'never said'),
      },
      checkpointer,
      paid,
    );
    const waiting = await first.invoke({ messages: [new HumanMessage('Buy it.')] });
    const [asked] = waiting.__interrupt__ ?? [];
    tell(`The graph waits for a person: ${JSON.stringify(asked?.value)}`);
    tell(`Paid so far: ${paid.length}`);
  }
  await using second = startProcess(
    {
      buyer: fakeModel().respond(new AIMessage('never asked')),
      payer: fakeModel().respond(new AIMessage('It is paid.')),
    },
    checkpointer,
    paid,
  );
  const done = await second.invoke(new Command({ resume: { decisions: [{ type: 'approve' }] } }));
  tell(`Another process went on: ${done.messages.at(-1)?.text ?? ''}`);
  tell(`Paid: ${paid.join()}`);
  return paid;
}

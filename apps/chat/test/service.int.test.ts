import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ruleModel } from '../src/rule-model.ts';
import { startService, type ChatService } from '../src/service.ts';

let service: ChatService;
beforeAll(async () => {
  service = await startService(ruleModel());
});
afterAll(() => service.close());

/** As `useChat` does it: the messages so far are sent, and the answer is read part by part. */
async function say(who: string, chatId: string, text: string): Promise<UIMessage> {
  const transport = new DefaultChatTransport({
    api: `${service.url}/chat`,
    headers: { authorization: `Bearer ${who}` },
  });
  const messages: UIMessage[] = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }];
  const stream = await transport.sendMessages({
    chatId,
    messages,
    trigger: 'submit-message',
    messageId: undefined,
    abortSignal: undefined,
  });
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return last!;
}
const textOf = ({ parts }: UIMessage) =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');

describe('the chat service', () => {
  it('answers through tools of its servers, as a stream that useChat reads', async () => {
    const message = await say('alice@acme', 'sum', 'add 2 3');
    expect(message.parts.map(({ type }) => type)).toContain('dynamic-tool');
    expect(textOf(message)).toMatch(/It says: .*5/);
  });

  it('shows each tenant its own skills, and one server to all of an identity', async () => {
    expect(textOf(await say('alice@acme', 'a', 'refunds?'))).toContain('three days');
    expect(textOf(await say('bob@globex', 'b', 'refunds?'))).not.toContain('three days');
    expect(textOf(await say('bob@globex', 'b', 'warranty?'))).toContain('two years');
  });

  it('refuses who is unknown, and a chat of somebody else', async () => {
    const post = (who: string) =>
      fetch(`${service.url}/chat`, {
        method: 'POST',
        headers: { authorization: `Bearer ${who}` },
        body: JSON.stringify({ id: 'mine', messages: [] }),
      }).then(({ status }) => status);
    expect(await post('mallory@nowhere')).toBe(401);
    await say('alice@acme', 'mine', 'hello');
    expect(await post('bob@globex')).toBe(403);
  });

  const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
  const title =
    chromium === undefined ? 'in a browser (skipped: no Chromium here)' : 'in a browser';
  it.skipIf(chromium === undefined)(`its page shows the answer ${title}`, async () => {
    const { stdout } = await promisify(execFile)(chromium!, [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--virtual-time-budget=10000',
      '--dump-dom',
      `${service.url}/?say=add%202%203`,
    ]);
    expect(stdout).toMatch(/class="tool">uses tools__get-sum/);
    expect(stdout).toMatch(/class="assistant">It says: .*5/);
  });

  it('its page is there', async () => {
    const page = await fetch(service.url);
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(await page.text()).toContain('<h1>Chat</h1>');
  });
});

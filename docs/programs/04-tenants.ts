import { createServer } from 'node:http';

import { aiSdk } from '@patchbay/ai-sdk';
import { createHost } from '@patchbay/host';
import { createAgentUIStreamResponse, ToolLoopAgent, type UIMessage } from 'ai';

const host = await createHost({ config: './patchbay.yaml' }); // lives as long as the service

// One process for thousands of users: servers with the same configuration and identity are shared, skills are not.
async function chat(request: Request): Promise<Response> {
  const user = await authenticate(request); // { id: 'alice', tenant: 'acme', token: '...' }
  const { id, messages } = (await request.json()) as { id: string; messages: UIMessage[] };
  // Get or create; a session id belongs to the identity that opened it first, anybody else gets an error.
  const skills = [`./tenants/${user.tenant}/skills`];
  await using session = await host.openSession(id, { identity: user, skills });
  const view = session.agent('support').view({ tools: { exclude: ['admin__*'] } });
  const agent = new ToolLoopAgent({ model: 'openai/gpt-5', ...aiSdk(view) });
  return createAgentUIStreamResponse({ agent, uiMessages: messages, abortSignal: request.signal });
} // sessions idle for 30 minutes are closed by the host, never while a stream flows

const server = createServer(toNodeHandler(chat)).listen(3000);
process.once('SIGTERM', () => server.close(() => void host.close()));

declare function authenticate(
  request: Request,
): Promise<{ id: string; tenant: string; token: string }>;
declare function toNodeHandler(
  handler: (request: Request) => Promise<Response>,
): Parameters<typeof createServer>[1];

import { defineTool, type ApprovalPolicy } from '@patchbay/protocols';
import { approvedTools, approveTool, ExtensionRegistry, revokeTool } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

const tools = {
  id: 'shop',
  tools: async () =>
    ['buy', 'sell'].map((name) => defineTool({ capability: 'shop', name, call: () => name })),
};
const make = (approval: ApprovalPolicy, executing?: { readonly include: readonly string[] }) => {
  const registry = new ExtensionRegistry({
    approval,
    ...(executing === undefined ? {} : { executing }),
  });
  registry.register(tools);
  return registry;
};
const calls = async (registry: ExtensionRegistry, session: string, name = 'shop__buy') =>
  (await registry.view({ session }).compile()).callTool(name, {}).then(
    () => 'ran',
    (error: { readonly code: string }) => error.code,
  );

describe('a tool that was approved for the session', () => {
  it('is not asked for again there, and nowhere else; nor is another tool approved', async () => {
    await using registry = make(() => ({ ask: 'Really?' }));
    expect(await calls(registry, 'one')).toBe('approval-required');
    approveTool(registry.state({ session: 'one' }), 'shop__buy');
    expect(await calls(registry, 'one')).toBe('ran');
    expect(await calls(registry, 'one', 'shop__sell')).toBe('approval-required');
    expect(await calls(registry, 'two')).toBe('approval-required');
  });

  it('stays approved in another process, until it is revoked', async () => {
    await using before = make(() => 'ask');
    approveTool(before.state({ session: 's' }), 'shop__buy');
    const stored = JSON.stringify(before.state({ session: 's' }).snapshot());
    await using registry = make(() => 'ask');
    const state = registry.state({ session: 's' });
    state.restore(JSON.parse(stored) as never);
    expect(approvedTools(state)).toEqual(['shop__buy']);
    expect(await calls(registry, 's')).toBe('ran');
    revokeTool(state, 'shop__buy');
    expect(state.snapshot()).toEqual({});
    expect(await calls(registry, 's')).toBe('approval-required');
  });

  it('is refused all the same where the policy denies it', async () => {
    await using registry = make(() => 'deny');
    approveTool(registry.state({ session: 's' }), 'shop__buy');
    expect(await calls(registry, 's')).toBe('approval-denied');
  });

  it('is no approval if what was restored is something else', async () => {
    await using registry = make(() => 'ask');
    registry.state({ session: 's' }).restore({ 'approvals.tools': { shop__buy: true } });
    expect(await calls(registry, 's')).toBe('approval-required');
  });
});

it('an answer is used up by a call that was cut off: it may have been made', async () => {
  await using registry = new ExtensionRegistry({ approval: () => 'ask' });
  let began = (): void => undefined;
  const running = new Promise<void>((resolve) => (began = resolve));
  const pay = defineTool({
    capability: 'shop',
    name: 'pay',
    call: (_args, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('stopped half way')));
        began();
      }),
  });
  const capability = { id: 'shop', tools: async () => [pay] };
  const registered = registry.register(capability);
  const answer = { approved: true, approvalId: 'a-1' };
  const call = async () =>
    (await registry.view({ session: 's' }).compile()).callTool('shop__pay', {}, answer);
  const cut = call().catch((error: unknown) => error);
  await running;
  await registered.close();
  expect(await cut).toBeInstanceOf(Error);
  registry.register(capability);
  await expect(call()).rejects.toMatchObject({ code: 'approval-denied' });
});

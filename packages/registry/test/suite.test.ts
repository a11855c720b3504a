import { changeSource, defineTool, type ChangeObservable } from '@patchbay/protocols';
import { CombinedCapability, ExtensionRegistry } from '@patchbay/registry';
import { describeCapability, describeChangeObservable } from '@patchbay/testkit/vitest';

/** A capability whose changes come through what `protocols` offers for that. */
function lamp(listeners: Set<() => void> = new Set()) {
  const changes = changeSource('lamp', (emit) => {
    const listener = () => emit('tools_changed');
    listeners.add(listener);
    return () => void listeners.delete(listener);
  });
  return {
    id: 'lamp',
    revision: changes.revision,
    changes: changes.subscribe,
    tools: async () => [defineTool({ capability: 'lamp', name: 'light', call: () => 'on' })],
  };
}

describeCapability('a capability with a changeSource', {
  create: async () => ({ capability: lamp }),
});

describeCapability('a combined capability', {
  create: async () => ({
    capability: () =>
      new CombinedCapability('room', [lamp(), new CombinedCapability('corner', [{ id: 'chair' }])]),
  }),
});

describeChangeObservable('changeSource', {
  create: async () => {
    const listeners = new Set<() => void>();
    return {
      capability: lamp(listeners),
      change: () => {
        for (const listener of listeners) listener();
      },
      listeners: () => listeners.size,
    };
  },
});

describeChangeObservable('a view of a registry', {
  create: async () => {
    const registry = new ExtensionRegistry();
    const source = changeSource('lamp');
    registry.register({
      id: 'lamp',
      revision: source.revision,
      changes: source.subscribe,
    });
    const view = registry.view();
    const capability: { readonly id: string } & ChangeObservable = {
      id: 'lamp',
      revision: source.revision,
      changes: (signal) => view.changes({ signal }),
    };
    return {
      capability,
      change: () => source.emit('tools_changed'),
      [Symbol.asyncDispose]: () => registry.close(),
    };
  },
});

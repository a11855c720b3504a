import { CapabilityName } from '@patchbay/capability-name';
import { describeCapability, describeChangeObservable } from '@patchbay/testkit/vitest';

import { backend } from './backend.ts';

const create = async () => {
  const service = backend();
  return {
    capability: new CapabilityName({ id: 'subject', backend: service }),
    change: async () => service.set([{ name: 'other', description: 'Another one.' }]),
    listeners: () => service.listeners(),
  };
};

describeCapability('CapabilityName', { create });
describeChangeObservable('CapabilityName', { create });

import { describeCapability, describeChangeObservable } from '@patchbay/testkit/vitest';

import { OpenApi } from '../src/index.ts';
import { petDocument } from './service.ts';

const create = async () => {
  const capability = new OpenApi({
    id: 'pets',
    document: async () => petDocument,
    baseUrl: 'http://127.0.0.1:1',
  });
  return { capability, change: async () => capability.refresh() };
};

describeCapability('OpenApi', { create });
describeChangeObservable('OpenApi', { create });

import type { PatchbayCode, Problem } from '@patchbay/protocols';

/** It works, but not as written. */
export const warning = (
  source: string,
  message: string,
  code: PatchbayCode | 'pool-thrashing' = 'protocol-error',
): Problem => ({ source, code, severity: 'warning', message });

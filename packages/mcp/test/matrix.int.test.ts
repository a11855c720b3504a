import { ALL, describeServer } from './matrix.ts';

/** One of each maker; all of them in `matrix.long.test.ts`. */
const CUT = ALL.filter(
  ({ made, transport, era }) =>
    (transport === 'stdio') === (made === 'v1') && (era === 'modern') !== (made === 'v1'),
);

for (const row of CUT) describeServer(row);

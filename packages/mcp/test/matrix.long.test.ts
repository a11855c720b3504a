import { ALL, describeServer } from './matrix.ts';

for (const row of ALL) describeServer(row);

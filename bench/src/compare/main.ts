import { tables } from './tables.ts';

console.log((await tables(console.error)).join('\n\n'));
// A peer may have left a process behind that keeps this one from ending.
process.exit(0);

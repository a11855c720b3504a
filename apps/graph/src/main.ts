import { story } from './story.ts';

const paid = await story(console.log);
process.exitCode = paid.length === 1 ? 0 : 1;

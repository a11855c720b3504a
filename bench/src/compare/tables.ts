import { aiSdkMcp, patchbayForAi } from './ai.ts';
import { mcpAdapters, patchbayForLangchain } from './langchain.ts';
import { ROWS } from './rows.ts';
import type { Side } from './side.ts';

/** A table for each peer, as Markdown: every cell is what came of it just now. `tell` hears what is tried. */
export async function tables(tell: (what: string) => void): Promise<readonly string[]> {
  return [
    await table(patchbayForAi, aiSdkMcp, tell),
    await table(patchbayForLangchain, mcpAdapters, tell),
  ];
}

async function table(ours: Side, peer: Side, tell: (what: string) => void): Promise<string> {
  const lines = [`| | ${ours.name} | \`${peer.name}\` |`, '| --- | --- | --- |'];
  for (const { what, outcome } of ROWS) {
    tell(`${peer.name}: ${what} …`);
    lines.push(`| ${what} | ${await outcome(ours)} | ${await outcome(peer)} |`);
  }
  return lines.join('\n');
}

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { refereeNode } from './referee-node.ts';

/** The referee's client scenarios that need no authorization. */
const SCENARIOS = [
  'initialize',
  'tools_call',
  'elicitation-sep1034-client-defaults',
  'sse-retry',
  'request-metadata',
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
  'json-schema-ref-no-deref',
  'json-schema-2020-12-preservation',
  'sep-2322-client-request-state',
  'sep-2640-client-no-prefetch',
  'sep-2640-client-verify-digest',
  'sep-2640-client-verify-size',
  'sep-2640-client-verify-frontmatter',
];
/** The referee's mock servers find their own ports. */
const AT_ONCE = 2;

const referee = join(
  createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'),
  '../dist/index.js',
);
const driver = fileURLToPath(new URL('driver.js', import.meta.url));

interface Verdict {
  readonly passed: boolean;
  /** All that was said meanwhile. */
  readonly output: string;
}

async function judge(node: string, scenario: string, folder: string): Promise<Verdict> {
  const child = spawn(
    node,
    [
      '--no-deprecation',
      referee,
      'client',
      '--command',
      `${JSON.stringify(process.execPath)} ${JSON.stringify(driver)}`,
      '--scenario',
      scenario,
      '-o',
      folder,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', resolve);
  });
  const [code, out, err] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { passed: code === 0, output: `${out}${err}` };
}

const wanted = process.argv.slice(2);
const scenarios = wanted.length === 0 ? SCENARIOS : wanted;
const node = await refereeNode();
const folder = await mkdtemp(join(tmpdir(), 'patchbay-conformance-'));
let passed = 0;
try {
  const waiting = [...scenarios];
  const work = async () => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
      const verdict = await judge(node, scenario, folder);
      if (verdict.passed) passed++;
      else console.log(verdict.output.trim());
      console.log(`${verdict.passed ? 'passed' : 'FAILED'}  ${scenario}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
} finally {
  await rm(folder, { recursive: true, force: true });
}
console.log(`conformance: ${passed} of ${scenarios.length} scenarios passed`);
process.exitCode = passed === scenarios.length ? 0 : 1;

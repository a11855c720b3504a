import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { refereeNode } from './referee-node.ts';

/** The referee's client scenarios. */
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
  'auth/metadata-default',
  'auth/metadata-var1',
  'auth/metadata-var2',
  'auth/metadata-var3',
  'auth/metadata-issuer-mismatch',
  'auth/2025-03-26-oauth-metadata-backcompat',
  'auth/2025-03-26-oauth-endpoint-fallback',
  'auth/resource-mismatch',
  'auth/authorization-server-migration',
  'auth/basic-cimd',
  'auth/pre-registration',
  'auth/token-endpoint-auth-basic',
  'auth/token-endpoint-auth-post',
  'auth/token-endpoint-auth-none',
  'auth/scope-from-www-authenticate',
  'auth/scope-from-scopes-supported',
  'auth/scope-omitted-when-undefined',
  'auth/scope-step-up',
  'auth/scope-retry-limit',
  'auth/offline-access-scope',
  'auth/offline-access-not-supported',
  'auth/iss-supported',
  'auth/iss-not-advertised',
  'auth/iss-supported-missing',
  'auth/iss-wrong-issuer',
  'auth/iss-unexpected',
  'auth/iss-normalized',
  'auth/client-credentials-jwt',
  'auth/client-credentials-basic',
  'auth/enterprise-managed-authorization',
  'auth/wif-jwt-bearer',
  'auth/dpop',
  'auth/dpop-nonce',
];
/** What the two revisions of MCP require of a client, as the referee puts it together. */
const REQUIREMENTS = ['2026-07-28', '2025-11-25'];
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

/** `what`: the referee's options. What was not checked has not passed. */
async function judge(node: string, what: readonly string[], folder: string): Promise<Verdict> {
  const child = spawn(
    node,
    [
      '--no-deprecation',
      referee,
      'client',
      '--command',
      `${JSON.stringify(process.execPath)} ${JSON.stringify(driver)}`,
      ...what,
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
  const output = `${out}${err}`;
  return { passed: code === 0 && /(?:Passed|Total): [1-9]/.test(output), output };
}

const wanted = process.argv.slice(2);
const scenarios = wanted.length === 0 ? SCENARIOS : wanted;
const requirements = wanted.length === 0 ? REQUIREMENTS : [];
const node = await refereeNode();
const folder = await mkdtemp(join(tmpdir(), 'patchbay-conformance-'));
let passed = 0;
let sets = 0;
try {
  const waiting = [...scenarios];
  const say = (what: string, verdict: Verdict) => {
    if (!verdict.passed) console.log(verdict.output.trim());
    console.log(`${verdict.passed ? 'passed' : 'FAILED'}  ${what}`);
    return verdict.passed ? 1 : 0;
  };
  const work = async () => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
      const verdict = await judge(node, ['--scenario', scenario], folder);
      passed += say(scenario, verdict);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  for (const revision of requirements) {
    const verdict = await judge(node, ['--requirements', revision], folder);
    sets += say(`everything that MCP ${revision} requires`, verdict);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
console.log(`conformance: ${passed} of ${scenarios.length} scenarios passed`);
process.exitCode = passed === scenarios.length && sets === requirements.length ? 0 : 1;

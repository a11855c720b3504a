import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The referee does not start on older ones. The client under test runs on what runs this program. */
const NEEDED_MAJOR = 22;

/** A Node.js that the referee runs on: this one, one that is named or in the PATH, or one that npm has or fetches. */
export async function refereeNode(): Promise<string> {
  const tried: string[] = [];
  const candidates = [process.execPath, process.env['CONFORMANCE_NODE'], 'node'];
  for (const candidate of candidates) {
    if (candidate === undefined) continue;
    const version = await versionOf(candidate);
    if (version !== undefined && Number(version.split('.')[0]) >= NEEDED_MAJOR) return candidate;
    tried.push(`${candidate} is ${version ?? 'not there'}`);
  }
  try {
    const { stdout } = await run('npx', ['-y', '-p', 'node@24', '-c', 'node -p process.execPath']);
    return stdout.trim();
  } catch (cause) {
    throw new Error(
      `The referee needs Node.js ${NEEDED_MAJOR} or later: ${tried.join('; ')}; and \`npx -p node@24\` failed. Name one in CONFORMANCE_NODE.`,
      { cause },
    );
  }
}

async function versionOf(node: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(node, ['-p', 'process.versions.node']);
    return stdout.trim();
  } catch {
    return undefined;
  }
}

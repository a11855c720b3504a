import { createHost } from '@patchbay/host';
import { PatchbayError } from '@patchbay/protocols';

await using host = await createHost();
await using session = await host.openSession('user-42');
const view = session.agent('coder').view();

const { problems, callTool } = await view.compile(); // never throws for one bad source
for (const problem of problems) {
  // e.g. mcp:github  connect-failed  "gh-mcp: command not found. Install it or fix `command` in .mcp.json:12"  retry at 10:03:20
  console.warn(problem.source, problem.code, problem.message, problem.retryAt ?? '');
}

try {
  await callTool('github__create_issue', { title: 'x' }, { signal: AbortSignal.timeout(1_000) });
} catch (error) {
  if (!PatchbayError.isInstance(error)) throw error;
  if (error.code === 'outcome-unknown')
    console.warn('It may have run. Look before you try again.', error.cause);
  if (error.code === 'aborted') console.warn('We gave up; the server was told.');
}

console.table(host.inspect().connections); // pid, state, age, calls, last error; no secrets
for await (const change of view.changes()) console.log(change.capability, change.kind);

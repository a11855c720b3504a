import { join } from 'node:path';

import type { Project } from './project.ts';
import { check, showTable, type Check } from './show.ts';

/** Two customers in one program: each sees its own skills; servers are shared as their configuration says. */
export async function showTenants(project: Project): Promise<readonly Check[]> {
  const { host, tenants } = project;
  const before = new Set(host.inspect().connections.map(({ pid }) => pid));
  const open = async (user: string, customer: string) => {
    const session = await host.openSession(`chat of ${user}`, {
      identity: { id: user },
      skills: [join(tenants, customer, 'skills')],
    });
    const { skills } = await session.agent('support').view().compile();
    await session.close();
    return skills.filter(({ source }) => source === 'session-skills').map(({ name }) => name);
  };
  const [ann, bob] = [await open('ann', 'acme'), await open('bob', 'globex')];
  project.look();
  const pidsOf = (server: string) =>
    host
      .inspect()
      .connections.filter(
        (connection) => connection.server === server && !before.has(connection.pid),
      )
      .map(({ pid }) => pid);
  const own = pidsOf('files');
  const shared = host
    .inspect()
    .connections.filter(({ server }) => server === 'shared-files')
    .map(({ pid }) => pid);
  showTable(
    ['who', 'skills of their own', 'files (per identity)', 'shared-files (everyone)'],
    [
      ['ann of acme', ann.join(), `pid ${own[0]}`, `pid ${shared[0]}`],
      ['bob of globex', bob.join(), `pid ${own[1]}`, `pid ${shared[0]}`],
    ],
  );
  const refused = await host.openSession('chat of ann', { identity: { id: 'bob' } }).then(
    () => 'opened',
    (error: unknown) => (error as { code: string }).code,
  );
  return [
    check(
      'each sees only the skills of its own',
      ann.join() === 'refunds' && bob.join() === 'shipping',
      `${ann.join()} | ${bob.join()}`,
    ),
    check('two processes for two identities by default', new Set(own).size === 2, own.join()),
    check(
      'one process for everyone where the configuration says so',
      shared.length === 1,
      shared.join(),
    ),
    check('nobody else opens their session', refused === 'identity-mismatch', refused),
  ];
}

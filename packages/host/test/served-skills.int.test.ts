import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createHost } from '@patchbay/host';
import { skillsServer } from '@patchbay/testkit';
import { expect, it } from 'vitest';

it.each([
  ['refuse', ['fixed']],
  ['read', ['fixed', 'live']],
] as const)(
  'with `dynamic_skills: %s` a server offers the skills %j',
  async (dynamicSkills, names) => {
    const root = await mkdtemp(join(tmpdir(), 'patchbay-served-'));
    await using server = await skillsServer({
      transport: 'http',
      skills: [{ name: 'fixed' }, { name: 'live', dynamic: true }],
    });
    const { url } = server.config as { readonly url: string };
    {
      await using host = await createHost({
        cwd: root,
        home: false,
        env: {},
        watch: false,
        config: { mcp_servers: { acme: { url, dynamic_skills: dynamicSkills } } },
      });
      const { skills, problems } = await host.registry.view().compile();
      expect(skills.map(({ name }) => name)).toEqual(names);
      const isSaid = problems.some(({ message }) => message.includes('live'));
      expect(isSaid).toBe(dynamicSkills === 'refuse');
    }
    await rm(root, { recursive: true });
  },
);

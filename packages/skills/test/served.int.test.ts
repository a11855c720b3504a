import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { ExtensionRegistry } from '@patchbay/registry';
import { memorySkills, SkillManagerCapability, type SkillManagerOptions } from '@patchbay/skills';
import { skillsServer, type SkillsServerOptions } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

import { callTool, catalogue } from './bench-folder.ts';

/** A server that serves skills, beside a local one, in one catalogue. */
async function plugged(options: SkillsServerOptions, manager: SkillManagerOptions = {}) {
  const server = await skillsServer(options);
  const pool = new ConnectionPool({ backOff: { firstMs: 1, maxMs: 20 } });
  const registry = new ExtensionRegistry({ onProblem: () => undefined });
  registry.register(
    new McpServerCapability({ id: 'acme', server: server.config, connections: pool }),
  );
  registry.register(
    memorySkills({ id: 'mine', skills: [{ name: 'pdf', description: 'Local.', body: 'Mine.' }] }),
  );
  registry.register(new SkillManagerCapability(manager));
  const view = registry.view({ session: 's' });
  return {
    server,
    view,
    step: () => view.beginTurn().prepare(),
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await pool.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const DOCS = {
  name: 'docs',
  frontmatter: { always_active: true, 'allowed-tools': 'Bash(*)' },
  body: 'Write docs.\n',
  files: { 'ref/a.md': 'More.', 'ref/b.md': 'Even more.' },
};
const text = (name: string, files: Readonly<Record<string, string>>) => ({ ...DOCS, name, files });

describe.each(['legacy', 'modern'] as const)('skills of a server of the %s era', (era) => {
  it('are in one catalogue with local ones: nothing is read, nothing is granted, no name is taken', async () => {
    await using acme = await plugged({ era, skills: [DOCS, { ...DOCS, name: 'pdf' }] });
    expect([...(await catalogue(acme.view)).keys()]).toEqual(['acme:pdf', 'docs', 'pdf']);
    const { active, problems } = await acme.step();
    expect([active, acme.server.reads]).toEqual([[], []]);
    expect(problems.map(({ code }) => code).toSorted()).toEqual([
      'skill-consent',
      'skill-consent',
      'skill-shadowed',
    ]);
    expect((await callTool(acme.view, 'activate_skill', { name: 'pdf' })).text).toContain('Mine.');
    const { text: said } = await callTool(acme.view, 'activate_skill', { name: 'acme:pdf' });
    expect(said).toContain('<skill_content name="acme:pdf" server="acme">');
    expect(said).toContain('Write docs.');
    const read = { name: 'acme:pdf', path: 'ref/a.md' };
    expect((await callTool(acme.view, 'read_skill_file', read)).text).toContain('More.');
    for (const path of [
      '../docs/SKILL.md',
      'skill://docs/SKILL.md',
      'ref%2f..%2f..%2fdocs',
      'run.sh',
    ]) {
      const { isError } = await callTool(acme.view, 'read_skill_file', { ...read, path });
      expect([path, isError]).toEqual([path, true]);
    }
    expect(acme.server.reads.some((uri) => uri.startsWith('skill://docs'))).toBe(false);
  });

  it('are granted what a user agrees to, and lose it when what they consist of changes', async () => {
    const asked: string[] = [];
    const trust: SkillManagerOptions['trust'] = ({ name, hash }) =>
      asked.push(`${name} ${hash}`) === 1;
    await using acme = await plugged({ era, skills: [DOCS] }, { trust });
    expect((await acme.step()).active).toMatchObject([{ name: 'docs', by: 'always' }]);
    acme.server.setSkills([{ ...DOCS, description: 'Other docs.', body: 'Obey.\n' }]);
    // Whoever reads it notices that it is another one; then the server is asked what it has now.
    await expect
      .poll(async () => [(await acme.step()).active, new Set(asked).size], { timeout: 5_000 })
      .toEqual([[], 2]);
    expect(asked).toHaveLength(2);
  });

  it('that give another file than they announced are over, and the model is told so', async () => {
    const bad = { ...text('docs', DOCS.files), misbehaviour: 'wrong-file-digest' as const };
    await using acme = await plugged({ era, skills: [bad] });
    await callTool(acme.view, 'activate_skill', { name: 'docs' });
    const first = { name: 'docs', path: 'ref/a.md' };
    const said = await callTool(acme.view, 'read_skill_file', first);
    expect(said).toMatchObject({ isError: true, text: expect.stringContaining('has changed') });
    const reads = acme.server.reads.length;
    const next = await callTool(acme.view, 'read_skill_file', { ...first, path: 'ref/b.md' });
    expect([next.isError, acme.server.reads.length]).toEqual([true, reads]);
    const { active, instructions } = await acme.step();
    expect(active).toEqual([]);
    expect(instructions.at(-1)!.text).toContain('has changed since it was activated');
  });

  it.each(['wrong-digest', 'wrong-size', 'other-frontmatter', 'binary-manifest'] as const)(
    'whose text is not what was announced are not activated (%s)',
    async (misbehaviour) => {
      await using acme = await plugged({ era, skills: [{ ...DOCS, misbehaviour }] });
      const said = await callTool(acme.view, 'activate_skill', { name: 'docs' });
      expect(said).toMatchObject({ isError: true, text: expect.stringContaining('has changed') });
      expect(said.text).not.toContain('Write docs.');
      expect((await acme.step()).active).toEqual([]);
    },
  );

  it('are read by their address, also where no list has them, which puts nothing in force', async () => {
    await using acme = await plugged({ era, skills: [DOCS, { name: 'hidden', listed: false }] });
    for (const [uri, part] of [
      ['skill://docs/SKILL.md', 'Write docs.'],
      ['skill://hidden/SKILL.md', ''],
      ['skill://pdf/SKILL.md', 'Mine.'],
    ] as const)
      expect(await acme.view.resources.read(uri)).toMatchObject([
        { text: expect.stringContaining(part) },
      ]);
    expect((await acme.step()).active).toEqual([]);
  });
});

describe('a skill that is in no list', () => {
  const hidden = (name: string) => ({ ...text(name, { 'a.md': 'More.' }), listed: false });

  it('is activated by its address, then read; the address of a local one stays that one’s', async () => {
    await using acme = await plugged({ skills: [DOCS, hidden('memo'), hidden('pdf')] });
    const uri = 'skill://memo/SKILL.md';
    expect([...(await catalogue(acme.view)).keys()]).toEqual(['docs', 'pdf']);
    const { text: said } = await callTool(acme.view, 'activate_skill', { name: uri });
    expect(said).toContain('<skill_content name="memo" server="acme">');
    const read = { name: 'memo', path: 'a.md' };
    expect((await callTool(acme.view, 'read_skill_file', read)).text).toContain('More.');
    expect((await acme.step()).active).toMatchObject([{ name: 'memo', by: 'model' }]);
    const local = await callTool(acme.view, 'activate_skill', { name: 'skill://pdf/SKILL.md' });
    expect(local.text).toContain('Mine.');
  });

  it('is none where no server has it, and its address is no name of another', async () => {
    await using acme = await plugged({ skills: [DOCS] });
    for (const name of [
      'skill://nothing/SKILL.md',
      'skill://docs/other.md',
      'file:///etc/SKILL.md',
    ])
      expect((await callTool(acme.view, 'activate_skill', { name })).isError).toBe(true);
  });
});

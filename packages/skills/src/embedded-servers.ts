import type { Problem } from '@patchbay/protocols';

import type { NamedSkill } from './named-skills.ts';

/** Where clients of the field look for MCP servers in a skill's frontmatter. */
const FIELDS = ['mcpServers', 'mcp', 'mcp_servers'] as const;

/** Skills that bring MCP servers along: they work, their servers are not started. */
export function serverProblems(named: readonly NamedSkill[]): readonly Problem[] {
  return named.flatMap(({ name, skill: { source, entry } }) => {
    const servers = FIELDS.flatMap((field) => {
      const value = entry.frontmatter?.[field];
      return typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.keys(value)
        : [];
    });
    if (servers.length === 0) return [];
    return [
      {
        source,
        code: 'skill-servers',
        severity: 'warning' as const,
        message: `The skill "${name}" of ${entry.origin} brings MCP servers (${servers.join(', ')}), which are not started; the skill itself works. Configure them as servers of the program.`,
      },
    ];
  });
}

import type { Problem, Tool } from '@patchbay/protocols';

/** Reports a tool that cannot be offered under its name; each name once. */
export function clashReporter(onProblem: (problem: Problem) => void): (tool: Tool) => void {
  const told = new Set<string>();
  return ({ id, definition: { name } }) => {
    if (told.has(name)) return;
    told.add(name);
    onProblem({
      source: id.capability,
      code: 'tool-name',
      severity: 'warning',
      message: `The tool "${name}" is not offered, because the agent already has a tool of this name. Rename the agent's tool, or give the capability another id.`,
    });
  };
}

/** A process warning, where there is a Node-like process. */
export function warn({ source, code, message }: Problem): void {
  const { process } = globalThis as {
    process?: { emitWarning?(text: string, options: { type: string; code: string }): void };
  };
  process?.emitWarning?.(`${source}: ${message}`, {
    type: 'PatchbayWarning',
    code: `patchbay:${code}`,
  });
}

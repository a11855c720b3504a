/**
 * What `disallowed-tools` names, as other clients write it: `mcp__github__delete_repo`, `mcp__github` for all of a server,
 * `Bash`, and `Bash(rm *)`, which can only be kept by taking the whole tool away. A bare name is that tool of any source.
 */
export function disallowedPatterns(written: string): readonly string[] {
  return patternsOf(written.replace(/\(.*\)$/, ''));
}

/** What `allowed-tools` names, the same way. `Bash(git *)` approves only some calls, which cannot be told: it is none here. */
export function approvedPatterns(written: string): readonly string[] {
  const name = written.replace(/\(\*?\)$/, '');
  return name.includes('(') ? [] : patternsOf(name);
}

function patternsOf(name: string): readonly string[] {
  const ofServer = /^mcp__(.+)$/.exec(name)?.[1];
  if (ofServer !== undefined) return [ofServer.includes('__') ? ofServer : `${ofServer}__*`];
  return name.includes('__') || name.includes('*') ? [name] : [name, `*__${name}`];
}

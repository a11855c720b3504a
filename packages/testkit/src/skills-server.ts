import { serveScript, type ScriptedServer, type ScriptedServerOptions } from './scripted-server.ts';
import type { ScriptedMethod } from './scripted-session.ts';
import { publish, type ServedSkill } from './served-skill.ts';
import {
  generationOf,
  type SkillsGeneration,
  type SkillsMisbehaviour,
} from './skills-generation.ts';

/** What a skills server is, and which skills it has. */
export interface SkillsServerOptions extends Omit<ScriptedServerOptions, 'resources'> {
  readonly skills?: readonly ServedSkill[];
  /** How it says which skills it has. Default: `final`. */
  readonly generation?: SkillsGeneration;
  /** Whether folders can be read (`resources/directory/read`). Default: false. */
  readonly directoryRead?: boolean;
  /** Skills on one page of the list. Default: all. */
  readonly pageSize?: number;
  readonly misbehaviour?: SkillsMisbehaviour;
}

/** An MCP server that serves skills, well or badly. */
export interface SkillsServer extends ScriptedServer {
  /** What was read (`resources/read`), in order. */
  readonly reads: readonly string[];
  /**
   * Serves other skills from now on. As the official server does, it says so (`notifications/resources/list_changed`)
   * only if skills come or go, or change their name or description: other changes are noticed by who checks.
   */
  setSkills(skills: readonly ServedSkill[]): void;
}

/**
 * A scripted server that serves skills as the Skills extension says; without any SDK, so that it can also lie.
 *
 * @example
 * await using server = await skillsServer({ skills: [{ name: 'pdf' }, { name: 'bad', misbehaviour: 'wrong-digest' }] });
 */
export async function skillsServer(options: SkillsServerOptions = {}): Promise<SkillsServer> {
  const { skills = [], ...scripted } = options;
  let published = skills.flatMap(publish);
  const reads: string[] = [];
  const catalogue = () =>
    JSON.stringify(published.map(({ uri, name, description }) => [uri, name, description]));
  const generation = generationOf(options, () => published);
  const read: ScriptedMethod = ({ uri }) => {
    const asked = String(uri);
    reads.push(asked);
    return generation.read(asked, reads.filter((each) => each === asked).length);
  };
  const server = await serveScript(scripted, {
    capabilities: generation.capabilities,
    methods: new Map([...generation.methods, ['resources/read', read]]),
  });
  return Object.assign(server, {
    reads,
    setSkills: (next: readonly ServedSkill[]) => {
      const before = catalogue();
      published = next.flatMap(publish);
      if (catalogue() !== before) server.notify('notifications/resources/list_changed');
    },
  });
}

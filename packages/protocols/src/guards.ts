import type { Capability } from './capability.ts';
import type { ChangeObservable } from './change-observable.ts';
import type { CommandResource } from './command-resource.ts';
import type { ResourceProvider } from './mcp-resource.ts';
import type { SkillResource } from './skill-resource.ts';
import type { ToolSource } from './tool.ts';

/** A capability with any of the protocols: what `register` takes, so that a plain object can be written in place. */
export type AnyCapability = Capability &
  Partial<SkillResource & ToolSource & ResourceProvider & CommandResource & ChangeObservable>;

/** The method that tells a protocol, and what else it needs. */
const PROTOCOLS = {
  SkillResource: ['listSkills', 'openSkill', 'skillExists'],
  ToolSource: ['callTool', 'listTools'],
  ResourceProvider: ['readResource', 'listResources', 'resourceExists'],
  CommandResource: ['listCommands', 'getCommand'],
  ChangeObservable: ['changes', 'revision'],
} as const;

const has = (value: object, method: string): boolean =>
  typeof (value as Record<string, unknown>)[method] === 'function';

export const isSkillResource = <T extends object>(value: T): value is T & SkillResource =>
  has(value, 'listSkills');
export const isToolSource = <T extends object>(value: T): value is T & ToolSource =>
  has(value, 'callTool');
export const isResourceProvider = <T extends object>(value: T): value is T & ResourceProvider =>
  has(value, 'readResource');
export const isCommandResource = <T extends object>(value: T): value is T & CommandResource =>
  has(value, 'listCommands');
export const isChangeObservable = <T extends object>(value: T): value is T & ChangeObservable =>
  has(value, 'changes');

/** Methods that a capability owes: it has the one that tells a protocol, and lacks others of it. */
export function missingMethods(
  capability: Capability,
): readonly { readonly protocol: string; readonly method: string }[] {
  return Object.entries(PROTOCOLS).flatMap(([protocol, [tells, ...others]]) =>
    has(capability, tells)
      ? others.filter((method) => !has(capability, method)).map((method) => ({ protocol, method }))
      : [],
  );
}

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import type { Arm, Case, Cost } from '../case.ts';
import { installedSize } from '../installed-size.ts';

/** Loads modules in a process that has loaded nothing before, and prints what that took there. */
const LOAD = `
  const urls = JSON.parse(process.argv[1]);
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (const url of urls) await import(url);
  const value = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  console.log(JSON.stringify({ value, cpu: (user + system) / 1000 }));
`;

interface Subject {
  readonly name: string;
  /** Packages, and where Node finds their entries. */
  readonly packages: Readonly<Record<string, string>>;
}

const SUBJECTS: readonly Subject[] = [
  {
    name: 'patchbay',
    packages: {
      '@patchbay/protocols': import.meta.resolve('@patchbay/protocols'),
      '@patchbay/registry': import.meta.resolve('@patchbay/registry'),
    },
  },
  { name: '@ai-sdk/mcp', packages: { '@ai-sdk/mcp': import.meta.resolve('@ai-sdk/mcp') } },
  {
    name: '@langchain/mcp-adapters',
    packages: { '@langchain/mcp-adapters': import.meta.resolve('@langchain/mcp-adapters') },
  },
];

async function load(urls: readonly string[]): Promise<Cost> {
  const args = ['--input-type=module', '--eval', LOAD, '--', JSON.stringify(urls)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
  return JSON.parse(stdout) as Cost;
}

const importArm = ({ name, packages }: Subject): Arm => ({
  name,
  run: async () => await load(Object.values(packages)),
});

const sizeArm = ({ name, packages }: Subject): Arm => ({
  name,
  run: async () => ({
    value:
      installedSize(Object.keys(packages), fileURLToPath(new URL('../..', import.meta.url))) / 1000,
  }),
});

/** From a fresh process to the first usable registry, or client. */
export const importTime: Case = {
  name: 'import of the package',
  unit: 'ms',
  warmUp: 1,
  arms: SUBJECTS.map(importArm),
  goals: [
    { arm: 'patchbay', of: 'value', atMost: 5 },
    { arm: 'patchbay', against: '@ai-sdk/mcp', of: 'value', atMost: 1 },
    { arm: 'patchbay', against: '@langchain/mcp-adapters', of: 'value', atMost: 1 },
  ],
};

/** On disk, with all dependencies and without peers. */
export const installSize: Case = {
  name: 'install size',
  unit: 'KB',
  once: true,
  arms: SUBJECTS.map(sizeArm),
  goals: [
    { arm: 'patchbay', of: 'value', atMost: 200 },
    { arm: 'patchbay', against: '@ai-sdk/mcp', of: 'value', atMost: 1 },
    { arm: 'patchbay', against: '@langchain/mcp-adapters', of: 'value', atMost: 1 },
  ],
};

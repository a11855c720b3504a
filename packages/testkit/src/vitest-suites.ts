import { describe, it } from 'vitest';

import { suiteTests, type Ended, type Suite, type SuiteOptions } from './requirement.ts';
import type { AdapterSubject } from './suites/adapter-subject.ts';
import { adapterSuite } from './suites/adapter-suite.ts';
import { capabilitySuite, type CapabilitySubject } from './suites/capability-suite.ts';
import { changeSuite, type ChangeSubject } from './suites/change-suite.ts';
import { commandSuite, type CommandSubject } from './suites/command-suite.ts';
import { mcpSuite, type McpSubject } from './suites/mcp-suite.ts';
import { providerSuite, type ProviderSubject } from './suites/provider-suite.ts';
import { skillSuite, type SkillSubject } from './suites/skill-suite.ts';

/** Registers the tests of one suite: `name` is whatever is tested. */
type Describe<Subject> = (name: string, options: SuiteOptions<Subject>) => void;

/** Longer than any requirement waits, so that it is the requirement that says what did not come. */
const TIMEOUT_MS = 60_000;

const registering =
  <Subject extends Ended>(suite: Suite<Subject>): Describe<Subject> =>
  (name, options) => {
    const tests = suiteTests(suite, options);
    describe(`${name} as ${suite.contract}`, () => {
      for (const test of tests) it(test.name, () => test.run(), TIMEOUT_MS);
    });
  };

/** What every capability does. */
export const describeCapability: Describe<CapabilitySubject> = registering(capabilitySuite);
/** What everything does that tells its changes. */
export const describeChangeObservable: Describe<ChangeSubject> = registering(changeSuite);
/** What every source of skills does. */
export const describeSkillResource: Describe<SkillSubject> = registering(skillSuite);
/** What everything does that is as an MCP server is. */
export const describeMcpResource: Describe<McpSubject> = registering(mcpSuite);
/** What every source of slash commands does. */
export const describeCommandResource: Describe<CommandSubject> = registering(commandSuite);
/** What everything does that gives connections to MCP servers. */
export const describeConnectionProvider: Describe<ProviderSubject> = registering(providerSuite);
/** What every adapter to an agent framework does. */
export const describeAdapter: Describe<AdapterSubject> = registering(adapterSuite);

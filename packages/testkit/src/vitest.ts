// What is listed here is public. Everything else is not.
export {
  describeAdapter,
  describeCapability,
  describeChangeObservable,
  describeCommandResource,
  describeConnectionProvider,
  describeMcpResource,
  describeSkillResource,
} from './vitest-suites.ts';
export {
  scriptedServer,
  type ScriptedServer,
  type ScriptedServerOptions,
} from './scripted-server.ts';

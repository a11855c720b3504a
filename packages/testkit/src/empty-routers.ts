import { PatchbayError, type CommandRouter, type ResourceView } from '@patchbay/protocols';

/** The slash commands of a view that has none. */
export const emptyCommands: CommandRouter = {
  list: async () => [],
  complete: async () => [],
  resolve: async (line) =>
    line.startsWith('/')
      ? {
          ok: false,
          code: 'command-unknown',
          message: `There is no command ${line.split(' ')[0]}.`,
          suggestions: [],
        }
      : undefined,
};

/** The resources of a view that has none. */
export const emptyResources = (changes: ResourceView['changes']): ResourceView => ({
  list: async () => [],
  exists: async () => false,
  read: async (uri) => {
    throw notFound(uri);
  },
  watch: async (uri) => {
    throw notFound(uri);
  },
  changes,
});

const notFound = (uri: string): PatchbayError =>
  new PatchbayError('not-found', `There is no resource ${uri}.`);

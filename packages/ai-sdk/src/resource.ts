import { planResult, type PlanOptions } from '@patchbay/adapter-kit';
import type { ExtensionView } from '@patchbay/protocols';
import type { UserModelMessage } from 'ai';

import { userMessage } from './user-message.ts';

/** How a resource is read and shown. */
export interface ResourceOptions extends PlanOptions {
  readonly signal?: AbortSignal;
}

/**
 * A resource that the view sees, as a message of the user: put it before the one that speaks of it. Text is named by its
 * URI and cut where it is too long; images, PDF and audio are parts of their own.
 * @throws PatchbayError `invalid-uri`, `unknown-scheme`, `not-found`, or what the source failed with
 */
export async function resource(
  view: Pick<ExtensionView, 'resources'>,
  uri: string,
  options: ResourceOptions = {},
): Promise<UserModelMessage> {
  const { signal, ...plan } = options;
  const content = await view.resources.read(uri, signal === undefined ? {} : { signal });
  const { text, media } = planResult({ content }, plan);
  return userMessage(text, media);
}

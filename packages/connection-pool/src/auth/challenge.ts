/** Why a server did not let a request in. */
export interface Challenge {
  /** `token`: it is missing, unknown or expired (401). `scope`: it allows too little (403). */
  readonly kind: 'token' | 'scope';
  /** The token that the request carried. */
  readonly token: string | undefined;
  /** Where the server says that its metadata is. */
  readonly metadataUrl: URL | undefined;
  /** What the server says that one needs, separated by spaces. */
  readonly scope: string | undefined;
}

const scopesOf = (scope: string | undefined): readonly string[] =>
  (scope ?? '').split(' ').filter((each) => each !== '');

/** Both, separated by spaces; `undefined` if there is none. */
export function union(...scopes: readonly (string | undefined)[]): string | undefined {
  const all = [...new Set(scopes.flatMap(scopesOf))];
  return all.length === 0 ? undefined : all.join(' ');
}

export const covers = (has: string | undefined, wanted: string | undefined): boolean =>
  scopesOf(wanted).every((each) => scopesOf(has).includes(each));

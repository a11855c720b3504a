/** A value that survives `JSON.stringify` and `JSON.parse` unchanged. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json };

/**
 * A JSON Schema as its author wrote it, draft 7 or 2020-12. It is passed on unchanged; whoever needs a reduced form
 * (a provider that refuses `$ref`, say) derives one and keeps this as the truth that arguments are checked against.
 */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The text of a result that a model is given, in characters; about 25,000 tokens. */
export const MAX_RESULT_CHARS = 100_000;

/**
 * Which major of the AI SDK calls us. It says so by what it hands over; until then the older form of everything is used,
 * which 7 understands too.
 */
export interface Major {
  isSeven: boolean;
}

/** Looks at what `prepareStep` or `execute` was given. */
export function noticeMajor(major: Major, options: object): void {
  if ('initialInstructions' in options || 'context' in options) major.isSeven = true;
}

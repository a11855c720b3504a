import type { Problem } from '@patchbay/protocols';

/** Problems as lines for a terminal or a log: what, where, since when and when again. Errors first. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems
    .toSorted(
      (a, b) => rank(a) - rank(b) || (a.source < b.source ? -1 : Number(a.source > b.source)),
    )
    .map((problem) => {
      const { severity, source, code, message, since, retryAt } = problem;
      const when = [
        since === undefined ? '' : `since ${timeOf(since)}`,
        retryAt === undefined ? '' : `tried again at ${timeOf(retryAt)}`,
      ]
        .filter((text) => text !== '')
        .join(', ');
      return `${severity.padEnd(7)}  ${source}  ${code}  ${oneLine(message)}${when === '' ? '' : ` (${when})`}`;
    })
    .join('\n');
}

const rank = ({ severity }: Problem): number => (severity === 'error' ? 0 : 1);

/** Server text may be in a message: it cannot draw on the terminal. */
function oneLine(text: string): string {
  return Array.from(text.replaceAll(/\s+/g, ' '))
    .filter((c) => c >= ' ' && c !== '\u007F')
    .join('');
}

const timeOf = (iso: string): string => iso.replace(/^.*T/, '').replace(/\.\d+Z$/, '');

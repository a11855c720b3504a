/**
 * Whether a URI fits a template (RFC 6570, by what its expressions can expand to). Templates come from servers: the work
 * grows with the length of both, whatever they are.
 */
export function coveredBy(template: string, uri: string): boolean {
  // Where in the URI the pieces so far can end.
  let ends = new Set([0]);
  for (const piece of template.split(/(\{[^}]*\})/)) {
    if (piece === '') continue;
    const next = new Set<number>();
    if (piece.startsWith('{')) {
      const { first, allowed, optional } = expression(piece);
      // One walk from each place that no earlier walk has passed.
      let walked = -1;
      for (const start of [...ends].toSorted((a, b) => a - b)) {
        if (optional) next.add(start);
        if (first !== '' && uri[start] !== first) continue;
        const from = start + first.length;
        for (let at = Math.max(from, walked); at < uri.length && allowed(uri[at]!); at++) {
          next.add(at + 1);
          walked = at + 1;
        }
      }
    } else {
      for (const start of ends) if (uri.startsWith(piece, start)) next.add(start + piece.length);
    }
    if (next.size === 0) return false;
    ends = next;
  }
  return ends.has(uri.length);
}

interface Expression {
  /** What an expansion begins with. */
  readonly first: string;
  readonly allowed: (character: string) => boolean;
  /** It can expand to nothing. */
  readonly optional: boolean;
}

const anything = () => true;
const but = (excluded: string) => (character: string) => !excluded.includes(character);

function expression(piece: string): Expression {
  switch (piece[1]) {
    case '+':
      return { first: '', allowed: anything, optional: false };
    case '#':
      return { first: '#', allowed: anything, optional: true };
    case '/':
      return { first: '/', allowed: but('?#'), optional: true };
    case '.':
    case ';':
    case '?':
    case '&':
      return { first: piece[1], allowed: but('/#'), optional: true };
    default:
      return { first: '', allowed: but('/'), optional: false };
  }
}

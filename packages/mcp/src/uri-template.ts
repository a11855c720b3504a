/** Whether a URI fits a template (RFC 6570, as far as simple expressions go). */
export function coveredBy(template: string, uri: string): boolean {
  const pattern = template
    .split(/(\{[^}]*\})/)
    .map((piece) => {
      if (!piece.startsWith('{')) return piece.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
      return piece.startsWith('{+') ? '.+' : '[^/]+';
    })
    .join('');
  return new RegExp(`^${pattern}$`, 's').test(uri);
}

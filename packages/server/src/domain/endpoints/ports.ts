/** The port of a template's `number/protocol` (http or tcp); undefined for anything else. */
export function readPort(text: string): number | undefined {
  const [, digits] = /^(\d{1,5})\/(?:http|tcp)$/.exec(text) ?? [];
  const port = Number(digits ?? 0);
  return port >= 1 && port <= 65_535 ? port : undefined;
}

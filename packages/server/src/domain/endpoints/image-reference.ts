/** A registry host: letters, digits, dots and a port, or an address in brackets. */
const host = String.raw`(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::\d{1,5})?`;
const part = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
const tag = "\\w[\\w.-]{0,127}";
const digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[a-fA-F0-9]{32,128}";
const reference = new RegExp(`^((?:(${host})/)?${part}(?:/${part})*)(?::${tag})?(?:@${digest})?$`);

/** Bounds from the distribution's grammar; the total length is checked before parsing. */
const nameMax = 255;
const wholeMax = 600;

/**
 * Whether this is a container image reference by the distribution's grammar: `[host[:port]/]path[:tag][@digest]`.
 * Nothing else may become part of a URL to an engine.
 */
export function isImageReference(image: string): boolean {
  if (image.length > wholeMax) return false;
  const [whole, name = "", machine] = reference.exec(image) ?? [];
  if (whole !== image || name.length > nameMax) return false;
  // a first part with capitals cannot be a path: it must be a host, and must look like one
  return machine === undefined || /[.:]/.test(machine) || machine === machine.toLowerCase();
}

/** Why a name is not an image reference, as one sentence without a full stop. */
export const noReference = (image: string): string =>
  `${JSON.stringify(image.slice(0, 80))} is no name of a container image: write [host[:port]/]path[:tag][@digest], the path in lower case`;

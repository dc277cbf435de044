// Texts that a terminal shows and does not obey, and that fit its width.

/** A text that a terminal shows and does not obey; what turns the direction of the rest is shown as well. */
export const harmless = (text: string): string =>
  text.replace(/\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, (char) => {
    if (char === "\t" || char === "\n") return char;
    const code = char.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`;
  });

/** Sequences that set colours, and do nothing else. */
export const colours = new RegExp(`(${String.fromCharCode(27)}\\[[\\d;]*m)`);

/** How much of a reason a table shows. */
export const whyWidth = 100;

/** A text that fits, with a mark where it is cut. */
export const clipped = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, Math.max(1, width - 1))}…` : text;

/** Help whose paragraphs fit; what is indented, such as a command to paste, stays whole. */
export const reflowed = (help: string, width: number): string =>
  help.replace(/^\S.*(?:\n\S.*)*/gm, (lines) =>
    lines.split("\n").every((line) => line.length <= width) ? lines : inLines(lines.split(/\s+/), width).join("\n"),
  );

/** Parts beside each other, as many as fit in a line. */
export function inLines(parts: readonly string[], width: number, between = " "): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = `${lines.at(-1) ?? ""}${between}${part}`;
    if (lines.length > 0 && longer.length <= width) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines;
}

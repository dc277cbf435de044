/** Whether a text contains control characters, which logs, pages and systems do not treat as text. */
export const hasControls = (text: string): boolean => /\p{Cc}/u.test(text);

/** The same for a text that may have several lines and tabs. */
export const hasOddControls = (text: string): boolean => hasControls(text.replace(/[\t\n\r]/g, ""));

/**
 * A text that a terminal shows and does not obey: control characters except tabs and line breaks become `\x1b` and the
 * like, and so do those that turn the direction of what follows.
 */
export const harmless = (text: string): string =>
  text.replace(/\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu, (char) => {
    if (char === "\t" || char === "\n") return char;
    const code = char.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`;
  });

/** Sequences that set colours, and do nothing else. */
const colours = new RegExp(`(${String.fromCharCode(27)}\\[[\\d;]*m)`);

/** The same with its colours, which end where it does, or without a trace of them. */
export function coloured(text: string, hasColours: boolean): string {
  const parts = text.split(colours);
  if (parts.length === 1) return harmless(text);
  const shown = parts.map((part, n) => (n % 2 === 0 ? harmless(part) : hasColours ? part : ""));
  return `${shown.join("")}${hasColours ? `${String.fromCharCode(27)}[0m` : ""}`;
}

/**
 * Puts JSON text on one line. It may have line breaks between tokens (never inside a string), which an event's data may
 * not.
 */
export const oneLine = (text: string): string => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, " ") : text);

/** Whether a text contains control characters, which logs, pages and systems do not treat as text. */
export const hasControls = (text: string): boolean => /\p{Cc}/u.test(text);

/** The same for a text that may have several lines and tabs. */
export const hasOddControls = (text: string): boolean => hasControls(text.replace(/[\t\n\r]/g, ""));

/**
 * A text that a terminal shows and does not obey: control characters except tabs and line breaks become `\x1b` and the
 * like.
 */
export const harmless = (text: string): string =>
  text.replace(/\p{Cc}/gu, (char) =>
    char === "\t" || char === "\n" ? char : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );

/**
 * Puts JSON text on one line. It may have line breaks between tokens (never inside a string), which an event's data may
 * not.
 */
export const oneLine = (text: string): string => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, " ") : text);

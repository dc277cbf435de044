/** Whether a text holds control characters, which logs, pages and systems read as something else than text. */
export const hasControls = (text: string): boolean => /\p{Cc}/u.test(text);

/** The same of a text that may have several lines. */
export const hasOddControls = (text: string): boolean => hasControls(text.replace(/[\t\n\r]/g, ""));

/** A text that a terminal shows and does not obey: control characters but tabs and line ends stand as `\x1b`. */
export const harmless = (text: string): string =>
  text.replace(/\p{Cc}/gu, (char) =>
    char === "\t" || char === "\n" ? char : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );

/** JSON text may hold line ends between its tokens (never inside a string): an event's data may not. */
export const oneLine = (text: string): string => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, " ") : text);

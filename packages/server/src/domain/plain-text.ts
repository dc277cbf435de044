/** Whether a text holds control characters, which logs, pages and systems read as something else than text. */
export const hasControls = (text: string): boolean => /\p{Cc}/u.test(text);

/** The same of a text that may have several lines. */
export const hasOddControls = (text: string): boolean => hasControls(text.replace(/[\t\n\r]/g, ""));

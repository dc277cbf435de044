import type { Env } from "./contexts.js";

/** How people in a folder call the command line: in a clone of Millrace there is no `millrace` on the PATH. */
export function called({ MILLRACE_CLONE: clone }: Env, folder: string): string {
  if (!clone) return "millrace";
  return folder === clone ? "npx millrace" : `npx --prefix ${clone} millrace`;
}

/** A text as one word of a command line to paste. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** A text for people whose commands are written as they are called here: those at its start, and after a sentence. */
export const asCalled = (text: string, name: string): string =>
  text.replace(/(^|[.:)] |\b[A-Z_]+=\w+ )millrace (?=[a-z-])/g, (_, before: string) => `${before}${name} `);

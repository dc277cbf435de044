/** The lines of a command's help that say what it prints with --json. */
export const jsonNote = (what: string): string => `\nWith --json: ${what}.`;

/**
 * The lines of a command's help that say what it prints with --json. A `shape` is written as a TypeScript type; those of
 * REST replies are in the reference.
 */
export const jsonNote = (what: string, shape?: string): string => `\nWith --json: ${what}${shape ? `, ${shape}` : ""}.`;

/** The lines of a command's help that show calls of it. The tests make each call that stands in the reference. */
export const examples = (...calls: readonly string[]): string =>
  [`\nExample${calls.length === 1 ? "" : "s"}:`, ...calls.map((call) => `  ${call}`)].join("\n");

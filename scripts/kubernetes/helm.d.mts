/** Resolves with Helm's path once it is built. */
export function builtHelm(): Promise<string>;

/** The chart's folder. */
export const chart: string;

/** Resolves with Helm's path once it is built. */
export function builtHelm(): Promise<string>;

/** The chart's folder. */
export const chart: string;

/** What Helm is asked for the chart's manifests. */
export function templateArgs(...values: string[]): string[];

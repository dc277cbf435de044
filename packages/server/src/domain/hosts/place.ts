/** Where workers run: on the servers' own machines, or in a cluster. */
export const places = ["machines", "cluster"] as const;
export type Place = (typeof places)[number];

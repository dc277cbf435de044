/** Resolves with the program that has all parts of a cluster, and kubectl, once it is built. */
export function builtProgram(): Promise<string>;

import type { Access } from "./access.js";

/** Access to an API server that asks for no credential. */
export const accessTo = (server: string, given: Partial<Access> = {}): Access => ({
  server,
  namespace: undefined,
  ca: undefined,
  isUnverified: false,
  serverName: undefined,
  proxy: undefined,
  isInside: false,
  credential: async () => ({}),
  ...given,
});

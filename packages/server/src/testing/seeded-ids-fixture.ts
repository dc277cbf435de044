import type { Ids } from "../ids.js";

/** Ids in the real format, but the same in every run. */
export function seededIds(): Ids {
  let state = 42;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const hex = (digits: number) => Array.from({ length: digits }, () => (next() % 16).toString(16)).join("");
  return {
    resource: () => Array.from({ length: 14 }, () => "abcdefghijklmnopqrstuvwxyz0123456789"[next() % 36]).join(""),
    uuid: (now) => {
      const time = now.toString(16).padStart(12, "0");
      return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`;
    },
    secret: (bytes) => Buffer.from(hex(bytes * 2), "hex").toString("base64url"),
  };
}

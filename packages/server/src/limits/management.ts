import { kib, mib } from "./units.js";

/** Requests of the management APIs, and what they leave in memory. */
export const management = {
  managementBytesMax: 256 * kib, // 20,000 variables of an environment take 45 ms to check and save, those of 1 MB 310 ms
  settingsBytesMax: 128 * mib, // memory of one owner's endpoints and templates, which every server keeps
  settingsBytesFree: kib, // a save that adds less is always allowed
} as const;

import { day, kib, mib, minute, second } from "./units.js";

/** Requests of the management APIs, and the memory that their results keep. */
export const management = {
  managementBytesMax: 256 * kib, // an environment of 20,000 variables takes 45 ms to check and save, one of 1 MB 310 ms
  managementValuesMax: 10_000, // names and values of its JSON: 5,000 variables; 60,000 take 50 ms to parse and check
  managementDepthMax: 32, // of its JSON; an endpoint takes 3, variables of GraphQL 12
  changesWaitingMax: 2_000, // of one owner; more are refused until some are made
  releasedAtOnce: 5, // endpoints that a change of their template releases before other owners' changes
  restV2PerMinuteMax: 6_000, // requests of one user to one server; the contract leaves REST v1 unlimited
  podsPerUserMax: 1_000,
  leastSizeMax: 1_000_000, // GB of memory, or vCPU, that a pod may ask of its machine: more than any has
  podEndMsMax: 366 * day, // until the time at which a pod stops or is deleted by itself
  podEndGapMs: second, // between two looks for pods whose time has come
  podVolumesAtOnce: 20, // of deleted pods, whose files one turn of a host's loop removes
  podVolumesGapMs: minute, // between two looks for them
  listItemsMax: 100, // of a list in a body, such as the words of a command
  ignoredNamesMax: 20, // of the unknown fields of a body, which a header names
  ignoredNameCharsMax: 80, // of each
  ignoredHeaderCharsMax: 1_000, // of all: proxies refuse a reply with long headers, even of a job that was accepted
  sshKeysCharsMax: 20_000, // of one user, together
  inlineNameChars: 170, // of an endpoint's name, in the name of the template made with it
  settingsBytesMax: 128 * mib, // of one owner's endpoints and templates, which every server keeps in memory
  settingsBytesFree: kib, // a save that adds less is always allowed
} as const;

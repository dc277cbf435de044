import { day, hour, kib, minute, second } from "./units.js";

/** Users and their keys. */
export const access = {
  usersMax: 1_000, // every server keeps them in memory, with their keys
  keysPerUserMax: 100,
  endpointsPerKeyMax: 100,
  keyOverlapMsDefault: day, // how long a rotated key's old secret still works
  keyOverlapMsMax: 30 * day,
  webhookSecretOverlapMs: day, // how long a rotated webhook secret still signs, beside the new one
  keyLookMs: second, // between two looks for held requests whose key was revoked or has expired
  keyUseMs: minute, // between two writes of when keys were last used
  keyUsesPerWrite: 500, // rows of one statement
  secretsPerUserMax: 200,
  registryAuthsPerUserMax: 100, // every server keeps them in memory, with passwords of up to 20,000 characters
  volumesPerUserMax: 2_000,
  secretNameCharsMax: 100,
  secretCharsMin: 4, // a shorter secret, masked wherever it stands, would make logs unreadable
  secretCharsMax: 32_768,
  filledEnvCharsMax: 512 * kib, // of an environment with its secrets in place; Linux takes 2 MiB, with the arguments
  secretLinesMax: 200, // of a secret, masked in logs one by one as well; a key file has 15 to 60
  auditKeptMsDefault: 90 * day,
  auditPageDefault: 50,
  auditPageMax: 100,
  auditValueCharsMax: 2_000, // of a field in an entry of the audit log
  auditSideCharsMax: 8_000, // of all fields before, or after, a change: a page of entries is made in memory
  auditRowsPerRead: 2_000, // entries searched in one read: a few milliseconds
  auditReadsMax: 25, // such reads for a page; a page that found too little by then is short, and says where to go on
  auditEntriesPerUserMax: 100_000, // newest kept: a caller that changes things in a loop fills no disk
  userRowKeptMs: 7 * day, // webhooks of a deleted user's last jobs are still signed
  signInTokenBytes: 18,
  signInLinkMs: hour, // from the first start
} as const;

import { day, gib, kib, mib, minute, second } from "./units.js";

/** Webhooks. */
export const webhooks = {
  webhookTimeoutMs: 10 * second,
  webhookReplyBytesMax: 64 * kib,
  deliveriesShown: 100, // a page of the list
  webhookTriesMax: 20, // of one delivery, those by hand included: each attempt is kept and listed
  webhookReplyKept: kib, // of a reply, shown with its attempt
  webhookIdleMs: second, // a connection stays open for the next delivery, whatever its receiver offers
  webhookHintsMax: 16, // informational replies (100, 103) before the reply itself
  webhookBytesMax: 64 * mib, // of all large bodies being delivered; a larger one is delivered alone
  webhookPieceBytes: mib, // of a body, signed at a time: other work gets its turn in between
  webhookConcurrency: 512, // an owner has at most as many as are still free
  webhookPage: 500,
  webhookHeads: 100, // endpoints whose first deliveries are looked at while a round over all of them goes on
  webhookLookMs: second, // between two looks while deliveries are under way; an end rings earlier
  webhookConcurrencyPerHost: 8, // one owner has half of them at most
  webhookConcurrencyPerSilentHost: 2, // a host may have healthy addresses besides an address that hangs
  webhookSilentMs: 5 * second, // a host without an answer after this long is silent
  webhookSilenceKeptMs: 5 * minute, // a silent host is called less for this long, or until it answers
  webhookSilentHostsMax: 10_000, // beyond it, the host called longest ago is forgotten
  webhookPauseMsMin: second, // pause before a failed read or write of the database for a webhook is retried
  webhookPauseMsMax: minute, // that pause doubles each time, up to this
  webhookPausesMax: 1_000, // deliveries whose pauses are remembered; a forgotten one is retried at once
  receiversPerUserMax: 1_000,
  receiversShown: 100, // a page of the list
  receiverFailing: 5, // attempts in a row that failed: it is told, and shown as failing
  heldPerUserMax: 10_000, // deliveries that wait for a user's paused receivers, with their jobs
  heldBytesPerUserMax: gib, // of their bodies
  receiverReleasedAtOnce: 500, // of them, in one commit
  receiverKeptMs: 7 * day, // without an attempt
  webhookUnrecordedMax: 512, // attempts that could not be recorded; beyond it no more are made
} as const;

import { kib, mib, minute, second } from "./units.js";

/** Webhooks. */
export const webhooks = {
  webhookTimeoutMs: 10 * second,
  webhookReplyBytesMax: 64 * kib,
  webhookBytesMax: 64 * mib, // of all large bodies that are being delivered; a larger one is alone
  webhookPieceBytes: mib, // of a body: between two pieces that are signed, others have their turn
  webhookConcurrency: 512, // an owner has at most as many as are free
  webhookPage: 500,
  webhookConcurrencyPerHost: 4,
  webhookConcurrencyPerSilentHost: 2, // a host may have healthy addresses beside one that hangs
  webhookSilentMs: 5 * second, // a host that has not answered after this is silent,
  webhookSilenceKeptMs: 5 * minute, // and has fewer places for so long, or until it answers
  webhookSilentHostsMax: 10_000, // the one that was called longest ago is forgotten
  webhookPauseMsMin: second, // what the database could not read or write for a webhook is tried again after this,
  webhookPauseMsMax: minute, // and after twice as long each time, up to this
  webhookPausesMax: 1_000, // deliveries whose pauses are remembered; a forgotten one is tried again at once
  webhookUnrecordedMax: 512, // attempts whose record could not be written; beyond it none is made
} as const;

import type { Ids } from "../../ids.js";

/** A new key for callers. */
export const newApiKey = (ids: Ids): string => `mr_${ids.secret(32)}`;
/** The part of a key that is stored and shown, so that its owner recognises it. */
export const prefixOf = (key: string): string => key.slice(0, 6);
/** A new secret that signs webhooks, in the form of the Standard Webhooks scheme. */
export const newWebhookSecret = (ids: Ids): string =>
  `whsec_${Buffer.from(ids.secret(24), "base64url").toString("base64")}`;

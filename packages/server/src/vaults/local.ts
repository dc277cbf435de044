import { createCipheriv, createDecipheriv, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { limits } from "../limits.js";
import type { Vault } from "../vault.js";

const prefix = "sealed1:";

/** A vault over one 32-byte seal key (AES-256-GCM). */
export function localVault(sealKey: Buffer): Vault {
  const sha256 = (text: string | Uint8Array) => hash("sha256", text, "hex");
  const remembered = new Map<string, string>();
  return {
    hash: sha256,
    hashKey: (key) => {
      const known = remembered.get(key);
      if (known !== undefined) return known;
      const made = sha256(key);
      if (remembered.size >= limits.hashesRemembered) remembered.clear();
      if (key.length <= limits.keyCharsRemembered) remembered.set(key, made);
      return made;
    },
    equal: (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b)),
    seal: (text) => {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", sealKey, nonce);
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return prefix + Buffer.concat([nonce, cipher.getAuthTag(), body]).toString("base64");
    },
    open: (sealed) => {
      const bytes = Buffer.from(sealed.slice(prefix.length), "base64");
      const cipher = createDecipheriv("aes-256-gcm", sealKey, bytes.subarray(0, 12));
      cipher.setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([cipher.update(bytes.subarray(28)), cipher.final()]).toString("utf8");
    },
    sign: (secret, webhookId, wallMs, payload) => ({
      "webhook-id": webhookId,
      "webhook-timestamp": String(Math.floor(wallMs / 1_000)),
      "webhook-signature": new Webhook(secret).sign(webhookId, new Date(wallMs), payload),
    }),
  };
}

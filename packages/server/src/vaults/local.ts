import { createCipheriv, createDecipheriv, createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { limits } from "../limits/index.js";
import type { Vault } from "../vault.js";

const prefix = "sealed1:";

/** A vault over one 32-byte seal key (AES-256-GCM). */
export function localVault(sealKey: Buffer): Vault {
  const sha256 = (text: string | Uint8Array) => hash("sha256", text, "hex");
  const remembered = new Map<string, string>();
  const macKey = createHmac("sha256", sealKey).update("millrace between servers").digest();
  const coverKey = (list: string) => createHmac("sha256", macKey).update(`cover ${list}`).digest();
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
    mac: (text) => createHmac("sha256", macKey).update(text).digest("hex"),
    cover: (list, value) => {
      const block = Buffer.alloc(16); // its second half, all zeros, shows that it was made here
      block.writeBigUInt64BE(BigInt(value));
      return createCipheriv("aes-256-ecb", coverKey(list), null).setAutoPadding(false).update(block).toString("hex");
    },
    uncover: (list, covered) => {
      const cipher = createDecipheriv("aes-256-ecb", coverKey(list), null).setAutoPadding(false);
      const block = cipher.update(Buffer.from(covered, "hex"));
      return block.readBigUInt64BE(8) === 0n ? Number(block.readBigUInt64BE(0)) : undefined;
    },
    sign: async (secrets, webhookId, wallMs, payload) => {
      const timestamp = String(Math.floor(wallMs / 1_000));
      const hmacs = secrets.map((secret) =>
        createHmac("sha256", Buffer.from(secret.replace(/^whsec_/, ""), "base64")).update(`${webhookId}.${timestamp}.`),
      );
      let bytes = 0;
      for (const slice of slices(payload)) {
        if (bytes + slice.length > limits.webhookPieceBytes) {
          await turn();
          bytes = 0;
        }
        for (const hmac of hmacs) hmac.update(slice);
        bytes += slice.length;
      }
      return {
        "webhook-id": webhookId,
        "webhook-timestamp": timestamp,
        "webhook-signature": hmacs.map((hmac) => `v1,${hmac.digest("base64")}`).join(" "),
      };
    },
  };
}

/** The same bytes, in slices of at most `webhookPieceBytes`. */
function* slices(pieces: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += limits.webhookPieceBytes) {
      yield piece.subarray(at, at + limits.webhookPieceBytes);
    }
  }
}

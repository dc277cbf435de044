import { randomFillSync } from "node:crypto";

/** The only access to randomness. */
export interface Ids {
  /** 14 characters of `[a-z0-9]`: endpoints, templates, volumes, workers. */
  resource(): string;
  /** A UUIDv7 whose time is `now`. */
  uuid(now: number): string;
  /** `bytes` of randomness as base64url: keys and secrets. */
  secret(bytes: number): string;
}

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
const pool = Buffer.alloc(8_192);
let used = pool.length;

/** The position of that many unused random bytes in the pool. */
function draw(bytes: number): number {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return used - bytes;
}

function random(bytes: number): Buffer {
  const at = draw(bytes);
  const drawn = Buffer.from(pool.subarray(at, used));
  pool.fill(0, at, used);
  return drawn;
}

function resource(): string {
  let id = "";
  while (id.length < 14) {
    // 252 is the largest multiple of 36 in a byte: higher values would favour the first letters
    for (const byte of random(18)) if (byte < 252 && id.length < 14) id += alphabet[byte % 36];
  }
  return id;
}

function uuid(now: number): string {
  const at = draw(16);
  pool.writeUIntBE(now, at, 6);
  pool[at + 6] = (pool[at + 6]! & 0x0f) | 0x70;
  pool[at + 8] = (pool[at + 8]! & 0x3f) | 0x80;
  const hex = pool.toString("hex", at, used);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export const systemIds: Ids = { resource, uuid, secret: (bytes) => random(bytes).toString("base64url") };

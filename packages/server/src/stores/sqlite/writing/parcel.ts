import type { JsonText } from "../../../domain/jobs/job.js";
import { limits } from "../../../limits/index.js";

/**
 * A message between threads: small values go as JSON text, because cloning their many small objects costs several times
 * as much.
 */
export type Parcel = string | { readonly whole: unknown };

/** Above this size, copying a text is cheaper than escaping it. */
const smallBytes = 64 * 1_024;

/** `bytes` is the approximate size of `value`. */
export const packed = (value: unknown, bytes: number): Parcel =>
  bytes < smallBytes ? JSON.stringify(value) : { whole: value };

export const unpacked = <T>(parcel: Parcel): T => (typeof parcel === "string" ? JSON.parse(parcel) : parcel.whole) as T;

/** The bytes that a text adds to a write. Bytes cannot be part of a small parcel, which crosses as text. */
export const sizeOf = (json: JsonText | undefined): number =>
  json instanceof Uint8Array ? Math.max(json.length, limits.jsonThreadBytes) : (json?.length ?? 0);

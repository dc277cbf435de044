import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { type Bounds, type Scan, scanJson } from "./scan.js";

/** Checks that bytes are UTF-8 and a single JSON text. */
export const scanUtf8 = (bytes: Uint8Array, bounds: Bounds): Scan =>
  isUtf8(bytes) ? scanJson(bytes, bounds) : { ok: false, at: 0, why: "it is not UTF-8" };

/** The SHA-256 of a text, in hex. */
export const digestOf = (bytes: Uint8Array): string => hash("sha256", bytes, "hex");

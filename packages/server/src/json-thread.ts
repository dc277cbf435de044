import { parentPort } from "node:worker_threads";
import { type Bounds, scanJson } from "./json-scan.js";
import { cutOutput } from "./json-split.js";

interface Task {
  readonly no: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Given: the text is to be checked. Not given: it is to be cut. */
  readonly bounds?: Bounds;
  readonly pieceBytes: number;
}

parentPort?.on("message", ({ no, bytes, bounds, pieceBytes }: Task) => {
  const done = bounds
    ? { scan: scanJson(bytes, bounds) }
    : { pieces: cutOutput(Buffer.from(bytes).toString(), pieceBytes) };
  parentPort?.postMessage({ no, bytes, ...done }, [bytes.buffer]);
});

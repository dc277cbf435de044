import { parentPort } from "node:worker_threads";
import { type Bounds, scanJson } from "./json-scan.js";

parentPort?.on("message", ({ no, bytes, bounds }: { no: number; bytes: Uint8Array<ArrayBuffer>; bounds: Bounds }) => {
  parentPort?.postMessage({ no, bytes, scan: scanJson(bytes, bounds) }, [bytes.buffer]);
});

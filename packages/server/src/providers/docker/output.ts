import { limits } from "../../limits/index.js";
import { answered } from "./failures.js";
import type { Contained } from "./logs.js";

/** The last lines that a container wrote to either pipe, with its secrets masked. */
export async function lastLines({ container, secrets }: Contained, host: string): Promise<string> {
  const options = { follow: false as const, stdout: true, stderr: true, tail: limits.logTailLines };
  const framed = await answered((abortSignal) => container.logs({ ...options, abortSignal }), host);
  const said = Buffer.concat(payloads(framed as unknown as Buffer)).toString("utf8");
  const text = secrets.mask(said);
  return text.trimEnd().split("\n").slice(-limits.logTailLines).join("\n").slice(-limits.logTailBytes);
}

const headerBytes = 8;

/** The contents of the engine's frames: each has a header with its pipe and length. */
function payloads(framed: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + headerBytes <= framed.length; ) {
    const length = framed.readUInt32BE(at + 4);
    found.push(framed.subarray(at + headerBytes, at + headerBytes + length));
    at += headerBytes + length;
  }
  return found;
}

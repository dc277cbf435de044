import type Docker from "dockerode";
import { limits } from "../../limits.js";

/** The last lines that a container wrote, to either of its pipes. */
export async function lastLines(container: Docker.Container): Promise<string> {
  const framed = await container.logs({ follow: false, stdout: true, stderr: true, tail: limits.logTailLines });
  const text = Buffer.concat(payloads(framed as unknown as Buffer)).toString("utf8");
  return text.trimEnd().split("\n").slice(-limits.logTailLines).join("\n").slice(-limits.logTailBytes);
}

const headerBytes = 8;

/** What stands in the engine's frames: each has a header that names its pipe and its length. */
function payloads(framed: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + headerBytes <= framed.length; ) {
    const length = framed.readUInt32BE(at + 4);
    found.push(framed.subarray(at + headerBytes, at + headerBytes + length));
    at += headerBytes + length;
  }
  return found;
}

#!/usr/bin/env node
/**
 * The oldest Node.js that our libraries run on; in a clone, `npx millrace` brings a newer one. Older ones must load this
 * file to say so: import nothing here that they lack.
 */
const oldestNode = [22, 19] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])) {
  process.stderr.write(`millrace needs Node.js ${oldestNode.join(".")} or newer; this is ${process.versions.node}.\n`);
  process.exit(1);
}
await import("./command-line.js");

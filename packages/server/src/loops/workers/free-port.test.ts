import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { freePort, outgoingPorts } from "./free-port.js";

const { workerPortFirst: from, workerPortsMin: count } = limits;

it("a worker's port is outside the range of outgoing connections, which could take it before the worker listens", async () => {
  const ports = await Promise.all(Array.from({ length: 20 }, () => freePort(new Set())));
  for (const port of ports) {
    expect(port).toBeGreaterThanOrEqual(from);
    expect(port).toBeLessThan(outgoingPorts().first);
  }
  expect(new Set(ports).size).toBeGreaterThan(1); // two servers on one machine do not know each other's ports
});

it("a worker's port was given to no other worker, and nothing listens on it", async () => {
  const outgoing = { first: from + count, last: 65_535 };
  const all = Array.from({ length: count }, (_, n) => from + n);
  const free = await freePort(new Set(), outgoing);
  const told = new Set(all.filter((port) => port !== free));
  const other = createServer();
  await new Promise<void>((listening) => other.listen(free, "127.0.0.1", listening));
  expect(all).not.toContain(await freePort(told, outgoing));
  await new Promise((closed) => other.close(closed));
});

it("a worker's port is in the range of outgoing connections if that includes all ports", async () => {
  expect(await freePort(new Set(), { first: 1_024, last: 65_535 })).toBeGreaterThan(0);
});

it("the range is read in the system's format, with the usual range as default", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ports-"));
  writeFileSync(join(folder, "range"), "40000\t50000\n");
  expect(outgoingPorts(join(folder, "range"))).toEqual({ first: 40_000, last: 50_000 });
  expect(outgoingPorts(join(folder, "none"))).toEqual({ first: 32_768, last: 65_535 });
  rmSync(folder, { recursive: true });
});

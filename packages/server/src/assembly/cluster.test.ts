import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readConfig } from "../config.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { MillraceEvent } from "../events.js";
import { StartError } from "../host/data-directory.js";
import { plainHost } from "../testing/facts-fixture.js";
import { openClusters } from "./cluster.js";

let folder: string;
let kubeconfig: string;
let events: MillraceEvent[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-clusters-"));
  kubeconfig = join(folder, "config");
  events = [];
  // a port that nothing listens on
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, "127.0.0.1", done));
  const { port } = probe.address() as { port: number };
  await new Promise((done) => probe.close(done));
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "rack",
    clusters: [{ name: "rack", cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: "me", user: { token: "any" } }],
    contexts: [{ name: "rack", context: { cluster: "rack", user: "me", namespace: "workers" } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A start while the cluster does not answer. */
function start(kept: string | undefined, reported: ReadonlyMap<string, HostFacts>) {
  let text = kept;
  return openClusters(
    readConfig({ MILLRACE_DATA_DIR: folder, MILLRACE_KUBERNETES: "on", MILLRACE_WORKER_URL: "http://millrace:8000" }),
    {
      installation: "a",
      logsDir: folder,
      env: { KUBECONFIG: kubeconfig },
      emit: (event) => void events.push(event),
      jobSecrets: () => async () => [],
      kept: { read: () => text, keep: (given) => void (text = given) },
      reported,
    },
  );
}

const warnings = () => events.flatMap((event) => (event.type === "server.warning" ? [event.message] : []));

it("A cluster that is away is known from an earlier start, or from what other servers have reported", async () => {
  await expect(start(undefined, new Map())).rejects.toThrow(StartError);
  const server = /http:[^"]+/.exec(readFileSync(kubeconfig, "utf8"))?.[0];
  const [kept] = await start(`uid-1 ${server} workers`, new Map());
  expect(kept?.id).toBe("kubernetes/uid-1");
  const facts = kept?.facts() as HostFacts;
  expect(JSON.stringify(facts)).not.toContain("127.0.0.1");
  const [told] = await start(undefined, new Map([["kubernetes/uid-2", facts]]));
  expect(told?.id).toBe("kubernetes/uid-2");
  expect(warnings().at(-1)).toMatch(/does not answer .*workers start there once it does/);
  await expect(start(undefined, new Map([["kubernetes/uid-2", { ...plainHost }]]))).rejects.toThrow(StartError);
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { additionsIn } from "../../packages/server/src/providers/kubernetes/additions.js";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { builtProgram } from "../../scripts/kubernetes/program.mjs";
import { blocksOf } from "../docs/guide/blocks.js";
import { runPage } from "../docs/guide/run-page.js";
import { freePort } from "../harness.js";
import { handler, wayBlocks, workerImage } from "./page.js";
import { clusterStartMs, commandsOf, pythonCluster } from "./scene.js";

/** Follows docs/guide/kubernetes.md on a real cluster, with the service beside it. */
let cluster: TestCluster;
let commands: string;
beforeAll(async () => {
  cluster = await pythonCluster(workerImage, handler);
  commands = commandsOf(cluster, { kubectl: `${await builtProgram()} kubectl` });
}, clusterStartMs);
afterAll(() => cluster?.end());

it("the page leads from an empty cluster to a COMPLETED job", { timeout: 300_000 }, async () => {
  const blocks = wayBlocks("beside");
  const port = String(await freePort());
  const { code, output, report } = await runPage(blocks, {
    startsService: true,
    env: { PATH: commands, KUBECONFIG: cluster.kubeconfig, MILLRACE_PORT: port, MILLRACE_DEMO: "off" },
    instead: {
      "http://192.0.2.10:8000": `http://${cluster.gateway}:${port}`,
      "http://127.0.0.1:8000": `http://127.0.0.1:${port}`,
      "npm start": "sh scripts/node.sh scripts/start.mjs",
    },
  });
  expect(code, report).toBe(0);
  const printed = [...output.values()].join("\n");
  expect(printed, report).toContain('"status":"COMPLETED"');
  expect(printed, report).toMatch(/"output":\{"echo": ?"hello"\}/);
  expect(printed, report).toMatch(/millrace-\w{14} +1\/1 +Running/);
  expect(printed, report).toContain("hello from the pod");
});

it("the page's file for pods is one that the service takes, and the cluster too", () => {
  const [block] = blocksOf("kubernetes").filter(({ words }) => words.file === "pods.yaml");
  const path = join(cluster.home, "pods.yaml");
  writeFileSync(path, block?.text ?? "");
  const { all, classes } = additionsIn(path);
  expect([...classes.keys()]).toEqual(["spot"]);
  const { metadata, spec } = classes.get("spot") ?? all;
  const containers = [{ name: "worker", image: "registry.example/me/worker:1" }];
  writeFileSync(
    join(cluster.home, "pod.json"),
    JSON.stringify({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, name: "tried" },
      // this cluster has no such class
      spec: { ...spec, priorityClassName: undefined, containers },
    }),
  );
  expect(cluster.kubectl("apply", "--dry-run=server", "--filename", join(cluster.home, "pod.json"))).toContain(
    "created",
  );
});

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { allWorkersOf, complete, frozen, phasesOf, save, workersOf } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, type TestServer, until } from "../harness.js";
import { clusterStartMs, namespace, podsIn, pythonCluster, startClusterServer } from "./scene.js";

const image = "millrace.test/python:1";
const handler = `
import asyncio, os
import runpod

async def handler(job):
    asked = job["input"]
    if asked.get("fail"):
        raise ValueError("told to")
    await asyncio.sleep(asked.get("seconds", 0))
    print("worked on", asked.get("text"))
    return {"echo": asked.get("text"), "id": job["id"], "secret": os.environ.get("SECRET"), "dollar": os.environ.get("DOLLAR")}

runpod.serverless.start({"handler": handler})
`;

let cluster: TestCluster;
let server: TestServer;
beforeAll(async () => {
  cluster = await pythonCluster(image, handler);
  const pods = join(cluster.home, "pods.yaml");
  writeFileSync(
    pods,
    "{}\n---\nname: queued\nmetadata: {labels: {queue: team}}\nspec: {schedulingGates: [{name: tests.example/queue}]}\n",
  );
  server = await startClusterServer(cluster, { MILLRACE_KUBERNETES_FREEZE: "on", MILLRACE_KUBERNETES_POD: pods });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
});

/** The processes of a worker's handler, as this machine sees them: it may run those of other clusters, too. */
const handlersOf = (workerId: string): number[] =>
  readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const isHandler = readFileSync(`/proc/${name}/cmdline`, "utf8").endsWith("-u\0/handler.py\0");
      return isHandler && readFileSync(`/proc/${name}/environ`, "utf8").includes(workerId) ? [Number(name)] : [];
    } catch {
      return []; // it has ended
    }
  });

const cpu = { computeType: "CPU", workersMax: 1, idleTimeout: 60 };

describe("a stock Python worker in a pod", () => {
  it("runs jobs unchanged, and reports its errors unchanged", async () => {
    const env = { SECRET: "hush-hush-1", DOLLAR: "$(HOME) $$" };
    const endpoint = await makeEndpoint(server, image, cpu, { env });
    const done = await complete(server, endpoint, { text: "grüße" });
    expect(done.output).toEqual({ echo: "grüße", id: done.id, secret: "hush-hush-1", dollar: "$(HOME) $$" });
    const failed = await call(server, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input: { fail: true } });
    expect(failed.body).toMatchObject({ status: "FAILED", error: expect.stringContaining("told to") });
    expect(podsIn(cluster)).toEqual([`millrace-${done.workerId} Running`]);

    const [worker] = await until(async () => {
      const workers = await workersOf(server, endpoint);
      return phasesOf(workers[0]).includes("first output") && workers;
    });
    const phases = ["placed", "image ready", "container created", "process started", "first take", "first output"];
    expect(phasesOf(worker)).toEqual(["asked for", ...phases]);
    const log = await fetch(`${server.url}/v1/workers/${done.workerId}/logs`, {
      headers: { authorization: `Bearer ${server.key}` },
    });
    expect(await log.text()).toContain("worked on grüße");

    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
    await expect.poll(() => podsIn(cluster), { timeout: 30_000 }).toEqual([]);
    const secrets = () => cluster.kubectl("get", "secrets", `--namespace=${namespace}`, "--output=name");
    await expect.poll(secrets, { timeout: 30_000 }).toBe("");
  }, 180_000);

  it("is frozen while it is idle, if the endpoint has FlashBoot, and thawed for the next job", async () => {
    const endpoint = await makeEndpoint(server, image, { ...cpu, idleTimeout: 1, flashboot: true });
    const first = await complete(server, endpoint);
    // the stock worker has a second process for its pings
    const pids = handlersOf(String(first.workerId));
    expect(pids.length).toBeGreaterThan(0);
    await frozen(server, endpoint, ...pids);
    const next = await complete(server, endpoint);
    expect(next.workerId).toBe(first.workerId);
    expect(next.delayTime).toBeLessThan(first.delayTime);
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
    await expect.poll(() => podsIn(cluster), { timeout: 30_000 }).toEqual([]);
  }, 120_000);

  it("outlives its server, is found by the next one, and finishes its job", async () => {
    const endpoint = await makeEndpoint(server, image, cpu);
    await complete(server, endpoint);
    const id = await submit(server, endpoint, { seconds: 6, text: "long" });
    await until(async () => (await statusOf(server, endpoint, id)).status === "IN_PROGRESS");
    const pods = podsIn(cluster);
    await server.kill();
    await server.restart();
    const done = await until(async () => {
      const status = await statusOf(server, endpoint, id);
      return status.status === "COMPLETED" && status;
    }, 60_000);
    expect(done).toMatchObject({ output: { echo: "long" }, retries: 0 });
    expect(podsIn(cluster)).toEqual(pods);
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
    await expect.poll(() => podsIn(cluster), { timeout: 30_000 }).toEqual([]);
  }, 180_000);
});

/** An event of a pod, as the Cluster Autoscaler makes it. */
const autoscalerSays = ({ name, uid }: { name: string; uid: string }, reason: string, message: string): void =>
  cluster.apply({
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name}.${reason.toLowerCase()}`, namespace },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
    source: { component: "cluster-autoscaler" },
    lastTimestamp: new Date().toISOString().replace(/\.\d+/, ""),
    type: "Normal",
    reason,
    message,
  });

describe("a job that waits for its pod says why:", () => {
  const waits = async (settings: Record<string, unknown>, words: RegExp) => {
    const endpoint = await makeEndpoint(server, image, { ...cpu, ...settings });
    const id = await submit(server, endpoint, {});
    await until(async () => words.test((await statusOf(server, endpoint, id)).waitDetail ?? ""), 30_000).catch(
      async () => {
        expect(await statusOf(server, endpoint, id)).toMatchObject({ waitDetail: words });
      },
    );
    return { endpoint, id };
  };

  it("no node has the GPUs, and the pod goes with its job", async () => {
    const { endpoint, id } = await waits(
      { computeType: "GPU", gpuCount: 2, gpuTypeIds: ["NVIDIA L4", "NVIDIA A40"] },
      /no node of the cluster with NVIDIA L4 or NVIDIA A40 has room for it: 0\/1 nodes are available: 1 node\(s\) didn't match/,
    );
    const [pod] = JSON.parse(cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--output=json")).items;
    expect(pod.spec.containers[0].resources.limits).toMatchObject({ "nvidia.com/gpu": "2" });
    expect(JSON.stringify(pod.spec.affinity)).toContain('"values":["NVIDIA-L4","NVIDIA-A40"]');
    const says = (words: string) =>
      until(async () => (await statusOf(server, endpoint, id)).waitDetail?.includes(words), 45_000);
    autoscalerSays(pod.metadata, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached");
    await says("; its autoscaler adds none: pod didn't trigger scale-up: 1 max node group size reached");
    autoscalerSays(pod.metadata, "TriggeredScaleUp", "pod triggered scale-up: [{gpus 0->1 (max: 4)}]");
    await says(
      "no node of the cluster with NVIDIA L4 or NVIDIA A40 has room for it, and its autoscaler has asked for one: 0/1 nodes are available",
    );
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
    await expect.poll(() => podsIn(cluster), { timeout: 30_000 }).toEqual([]);
  }, 120_000);

  it("a quota is used up, and the job runs when there is room", async () => {
    cluster.apply({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "none", namespace },
      spec: { hard: { pods: "0" } },
    });
    const { endpoint, id } = await waits({}, /the cluster does not admit its pod: .*exceeded quota: none/);
    cluster.kubectl("delete", "resourcequota", "none", `--namespace=${namespace}`);
    await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 60_000);
    const [worker] = await allWorkersOf(server, endpoint);
    expect(worker).toMatchObject({ state: expect.stringMatching(/idle|running/) });
    await save(server, endpoint, { workersMax: 0 });
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  }, 120_000);

  it("a policy denies its pod, which is no failed start, and the job runs when it no longer does", async () => {
    const policy = "admissionregistration.k8s.io/v1";
    cluster.apply(
      {
        apiVersion: policy,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: "owners" },
        spec: {
          matchConstraints: {
            resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
          },
          validations: [{ expression: "'owner' in object.metadata.labels", message: "who owns it?" }],
        },
      },
      {
        apiVersion: policy,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: "owners" },
        spec: { policyName: "owners", validationActions: ["Deny"] },
      },
    );
    // a policy takes a moment to be in force
    const isDenied = () => {
      try {
        cluster.kubectl("run", "probe", "--image=x", "--dry-run=server", `--namespace=${namespace}`);
        return false;
      } catch {
        return true;
      }
    };
    await until(isDenied, 30_000);
    const { endpoint, id } = await waits({}, /the cluster does not admit its pod: .*who owns it\?/);
    const [waiting] = await allWorkersOf(server, endpoint);
    cluster.kubectl("delete", "validatingadmissionpolicybinding", "owners");
    await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 90_000);
    expect((await allWorkersOf(server, endpoint)).map((each) => each.id)).toEqual([waiting.id]);
    await save(server, endpoint, { workersMax: 0 });
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  }, 180_000);

  it("a gate of its class holds it back, as a queue would, and the job runs when it opens", async () => {
    const { endpoint, id } = await waits({ podClass: "queued" }, /a queue of the cluster has not admitted its pod yet/);
    const gated = () =>
      cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--selector=queue=team", "--output=name");
    const pod = await until(() => gated().trim() || undefined, 30_000);
    const patch = JSON.stringify([{ op: "remove", path: "/spec/schedulingGates" }]);
    cluster.kubectl("patch", pod, `--namespace=${namespace}`, "--type=json", `--patch=${patch}`);
    await until(async () => (await statusOf(server, endpoint, id)).status === "COMPLETED", 60_000);
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  }, 120_000);
});

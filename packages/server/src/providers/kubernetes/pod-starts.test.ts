import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startCluster, type TestCluster } from "../../../../../scripts/kubernetes/cluster.mjs";
import { TestRegistry } from "../../../../../tests/docker/registry.js";
import { type ImageSpec, left, type Starting, StartUnsure } from "../../provider.js";
import { follower } from "../contracts/log-lines.js";
import { findAccess } from "./api-server/access.js";
import { Cluster } from "./api-server/cluster.js";
import { type KubernetesOptions, KubernetesProvider } from "./kubernetes-provider.js";
import { namespaceUid } from "./rights.js";

const image = "millrace.test/busybox:1";
const namespace = "default";
const workerId = "worker00000001";
let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startCluster();
  cluster.makeImage(image, { programs: ["/bin/busybox"] });
}, 1_200_000);
afterAll(() => cluster?.end());

let logsDir: string;
let opened: KubernetesProvider[] = [];
beforeEach(() => {
  logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
});
afterEach(async () => {
  for (const provider of opened) await provider.leave();
  opened = [];
  cluster.kubectl("delete", "pods,secrets", "--all", "--grace-period=0", "--force");
  rmSync(logsDir, { recursive: true });
});

/** The provider of another server. */
function open(url?: string, more: Partial<KubernetesOptions> = {}): KubernetesProvider {
  const access = findAccess({ KUBECONFIG: cluster.kubeconfig }, undefined);
  const provider = new KubernetesProvider({
    cluster: new Cluster(url === undefined ? access : { ...access, server: url }),
    namespace,
    logsDir,
    installation: "starts",
    graceMs: 1_000,
    gpuResource: "nvidia.com/gpu",
    gpuLabel: "nvidia.com/gpu.product",
    additions: {},
    ...more,
  });
  opened.push(provider);
  return provider;
}

const spec = (secret: string, more: Partial<ImageSpec> = {}): ImageSpec => ({
  workerId,
  from: { image },
  entrypoint: [],
  command: ["/bin/busybox", "sh", "-c", "echo $HELLO; exec /bin/busybox sleep 600"],
  env: { RUNPOD_AI_API_KEY: secret, HELLO: `of ${secret.length}` },
  mounts: [],
  ...more,
});
/** No node has room for it. */
const tooLarge = { cpus: 1_000 };

function starting() {
  const notes: string[] = [];
  const wanted = new AbortController();
  const given: Starting = { note: (doing) => notes.push(doing), reached: () => {}, signal: wanted.signal };
  return { given, wanted, notes };
}
const pods = () =>
  cluster.kubectl("get", "pods", "--output=jsonpath={.items[*].metadata.uid}").split(" ").filter(Boolean);
const secrets = () => cluster.kubectl("get", "secrets", "--output=name").split("\n").filter(Boolean);

/** What the worker has said when it has said that. */
async function said(provider: KubernetesProvider): Promise<string[]> {
  const reader = follower(provider, workerId);
  const lines = await reader.until("of 2");
  reader.leave();
  return lines;
}

describe("A start in a cluster", () => {
  it("that is left goes on at the next server, with the new secret and one pod", { timeout: 60_000 }, async () => {
    const [first, next] = [open(), open()];
    const { given, wanted, notes } = starting();
    const before = first.start(spec("a", tooLarge), given);
    await expect.poll(() => notes.at(-1), { timeout: 20_000 }).toMatch(/no node of the cluster has room/);
    wanted.abort(left);
    await expect(before).rejects.toThrow(StartUnsure);
    expect(pods()).toHaveLength(1);
    expect(await next.look(workerId)).toMatchObject({ state: "unknown", isAbsent: true });
    const handle = await next.start(spec("bb"));
    expect(pods()).toEqual([handle.ref.uid]);
    expect(await said(next)).toEqual(["of 2"]);
    await expect.poll(secrets, { timeout: 20_000 }).toHaveLength(1);
  });

  it("that is left and begun again by the same server takes the new secret", { timeout: 60_000 }, async () => {
    const provider = open();
    const { given, wanted, notes } = starting();
    const before = provider.start(spec("a", tooLarge), given);
    await expect.poll(() => notes.at(-1), { timeout: 20_000 }).toMatch(/no node/);
    wanted.abort(left);
    const again = provider.start(spec("bb"));
    await expect(before).rejects.toThrow(StartUnsure);
    await again;
    expect(await said(provider)).toEqual(["of 2"]);
  });

  it("does not take a pod that runs with another secret for its own", { timeout: 60_000 }, async () => {
    const first = await open().start(spec("a"));
    const second = await open().start(spec("bb"));
    expect(second.ref.uid).not.toBe(first.ref.uid);
    expect(pods()).toEqual([second.ref.uid]);
  });

  it("that is no longer wanted leaves neither pod nor secret", { timeout: 60_000 }, async () => {
    const { given, wanted, notes } = starting();
    const start = open().start(spec("a", tooLarge), given);
    await expect.poll(() => notes.at(-1), { timeout: 20_000 }).toMatch(/no node/);
    wanted.abort();
    await expect(start).rejects.toThrow("not wanted any more");
    await expect.poll(() => [...pods(), ...secrets()], { timeout: 20_000 }).toEqual([]);
  });

  it("never passes on which GPUs it may see, where its node gives it some", () => {
    const env = { ...spec("a").env, NVIDIA_VISIBLE_DEVICES: "all" };
    const { given, wanted } = starting();
    const start = open().start(spec("a", { env, gpuWish: { count: 1, types: [] } }), given);
    return expect
      .poll(() => cluster.kubectl("get", "secrets", "--output=jsonpath={.items[*].data}"), { timeout: 20_000 })
      .toSatisfy((data) => String(data).includes("HELLO") && !String(data).includes("NVIDIA"))
      .finally(async () => {
        wanted.abort();
        await start.catch(() => {});
      });
  });
});

it("A pod whose node is gone is forgotten without its log", { timeout: 90_000 }, async () => {
  const provider = open();
  await provider.start(spec("a"));
  await cluster.node.stopKubelet();
  try {
    const status = {
      phase: "Failed",
      reason: "Terminated",
      message: "Pod was terminated in response to node shutdown.",
    };
    const patch = ["--subresource=status", "--type=merge", "--patch", JSON.stringify({ status })];
    cluster.kubectl("patch", "pod", `millrace-${workerId}`, ...patch);
    expect(await provider.look(workerId)).toMatchObject({ state: "ended", exit: { cause: "host" } });
    await provider.forget(workerId);
    expect(pods()).toEqual([]);
  } finally {
    cluster.node.startKubelet();
  }
});

it("What is left of earlier servers is told as soon as someone listens", { timeout: 60_000 }, async () => {
  await open().start(spec("a"));
  await opened[0]?.leave();
  const next = open();
  const told = new Promise((resolve) => next.onEnd(resolve));
  expect(await told).toBe(workerId);
});

it("A proxy's word that there is no such page says nothing about workers", async () => {
  const proxy = createServer((_, reply) => reply.writeHead(404, { "content-type": "text/html" }).end("<h1>404</h1>"));
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  try {
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    await expect(open(url).look(workerId)).rejects.toThrow("the cluster cannot do it now");
  } finally {
    proxy.close();
  }
});

it("A cluster is known by its namespace's uid", async () => {
  const access = findAccess({ KUBECONFIG: cluster.kubeconfig }, undefined);
  const uid = await namespaceUid(new Cluster(access), namespace);
  expect(uid).toBe(cluster.kubectl("get", "namespace", namespace, "--output=jsonpath={.metadata.uid}"));
});

it("A worker is frozen only where that is allowed, and where its image has a shell", async () => {
  const asked = await open().start(spec("one"));
  expect(asked.isUnfreezable).toBe(true);
  await open().pause(workerId);
  // this image has busybox, and no `sh`
  const allowed = open(undefined, { freezes: true });
  expect(await allowed.look(workerId)).toMatchObject({ state: "running", handle: { isUnfreezable: true } });
});

it("An image is not pulled before its credentials are in the cluster, however long that takes", async () => {
  const registry = await TestRegistry.open();
  try {
    registry.gate = { scheme: "basic", username: "someone", password: "word" };
    const from = { image: registry.keep(cluster, image, "team/late"), auth: { username: "someone", password: "word" } };
    class SlowCluster extends Cluster {
      override async ask<T>(...[method, path, call]: Parameters<Cluster["ask"]>): Promise<T> {
        if (method === "POST" && path.endsWith("/secrets")) await new Promise((over) => setTimeout(over, 2_000));
        return super.ask(method, path, call);
      }
    }
    const slow = new SlowCluster(findAccess({ KUBECONFIG: cluster.kubeconfig }, undefined));
    const notes: string[] = [];
    const signal = new AbortController().signal;
    const starting: Starting = { note: (words) => notes.push(words), reached: () => {}, signal };
    await open(undefined, { cluster: slow }).start(spec("secret", { from }), starting);
    for (const wrong of ["cannot be pulled", "a queue"]) expect(notes.join("\n")).not.toContain(wrong);
  } finally {
    await registry.close();
  }
}, 60_000);

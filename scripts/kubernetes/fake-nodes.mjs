// Nodes that exist only in the API, for measuring what thousands of pods cost: the real scheduler fills them, and instead
// of kubelets a writer says of each pod that it runs, and removes it when it is to go.
import { Agent, request } from "undici";
import { findAccess } from "../../packages/server/dist/providers/kubernetes/api-server/access.js";
import { linesIn } from "../../packages/server/dist/providers/kubernetes/lines.js";

const merge = "application/merge-patch+json";

const large = { cpu: "128", memory: "4Ti", pods: "250", "ephemeral-storage": "64Ti" };

/**
 * Makes `count` nodes in a cluster without any, and plays their kubelets until `end` is called. With `workers`, what runs
 * in their pods is played too. `resources`: what each node has.
 */
export async function fakeNodes(cluster, count, workers, resources = large) {
  const access = findAccess({ KUBECONFIG: cluster.kubeconfig }, undefined);
  const { cert, key } = await access.credential();
  const agent = new Agent({ connect: { ca: access.ca, cert, key }, connections: 16 });
  const closing = new AbortController();
  const send = async (method, path, body, type = "application/json") => {
    const reply = await request(`${access.server}${path}`, {
      method,
      dispatcher: agent,
      headers: { "content-type": type },
      body: body && JSON.stringify(body),
      signal: closing.signal,
    });
    const text = await reply.body.text();
    if (reply.statusCode >= 500) throw new Error(`${method} ${path}: ${reply.statusCode}`);
    return { status: reply.statusCode, text };
  };
  /** What a pod's container gets as its environment: the kubelet waits for the secret. */
  const environmentOf = async ({ metadata, spec }) => {
    const { name } = spec.containers[0].envFrom[0].secretRef;
    const { status, text } = await send("GET", `/api/v1/namespaces/${metadata.namespace}/secrets/${name}`);
    if (status !== 200) throw new Error(`${name}: ${status}`);
    const data = Object.entries(JSON.parse(text).data);
    return Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
  };

  for (let n = 0; n < count; n++) {
    const name = `fake-${n}`;
    const labels = { "kubernetes.io/hostname": name };
    await send("POST", "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels } });
    const conditions = [{ type: "Ready", status: "True", reason: "KubeletReady", lastHeartbeatTime: new Date() }];
    const status = { capacity: resources, allocatable: resources, conditions };
    await send("PATCH", `/api/v1/nodes/${name}/status`, { status }, merge);
    // a new node is closed until a controller has seen it
    await send("PATCH", `/api/v1/nodes/${name}`, { spec: { taints: [] } }, merge);
  }

  let told = 0;
  /** Pods that were told to run. */
  const running = new Set();
  const tell = async (pod) => {
    const { metadata, spec, status } = pod;
    const { name, namespace, uid, deletionTimestamp } = metadata;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    if (!spec.nodeName?.startsWith("fake-")) return;
    if (deletionTimestamp !== undefined) {
      workers?.stop(uid);
      const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0, preconditions: { uid } };
      return send("DELETE", path, body);
    }
    const isStopped = spec.activeDeadlineSeconds !== undefined && status.phase === "Running";
    if (running.has(uid) && !isStopped) return;
    running.add(uid);
    if (isStopped) workers?.stop(uid);
    else workers?.begin(uid, await environmentOf(pod));
    const at = new Date();
    const address = `10.${(told >> 16) & 255}.${(told >> 8) & 255}.${told++ & 255}`;
    const state = isStopped
      ? { terminated: { exitCode: 143, reason: "Error", startedAt: at, finishedAt: at } }
      : { running: { startedAt: at } };
    const container = {
      name: "worker",
      image: "i",
      imageID: "sha256:1",
      ready: true,
      started: true,
      restartCount: 0,
      state,
    };
    const now = { phase: isStopped ? "Failed" : "Running", podIP: address, containerStatuses: [container] };
    await send("PATCH", `${path}/status`, { status: now }, merge);
  };
  /** A kubelet says it again when the API server is back. */
  const tellUntilHeard = async (pod) => {
    while (!closing.signal.aborted) {
      try {
        return await tell(pod);
      } catch {
        running.delete(pod.metadata.uid);
        await new Promise((again) => setTimeout(again, 500));
      }
    }
  };
  const follow = async () => {
    while (!closing.signal.aborted) {
      try {
        const { body } = await request(`${access.server}/api/v1/pods?watch=true&timeoutSeconds=240`, {
          dispatcher: agent,
          signal: closing.signal,
          bodyTimeout: 0,
        });
        for await (const line of linesIn(body, () => 2 ** 22)) {
          const { type, object } = JSON.parse(line.toString());
          if (type === "ADDED" || type === "MODIFIED") void tellUntilHeard(object);
          else if (type === "DELETED") workers?.stop(object.metadata.uid);
        }
      } catch {
        await new Promise((again) => setTimeout(again, 500));
      }
    }
  };
  void follow();
  return {
    end: async () => {
      closing.abort();
      await agent.destroy();
    },
  };
}

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { builtHelm } from "../../scripts/kubernetes/helm.mjs";
import { builtProgram } from "../../scripts/kubernetes/program.mjs";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { runPage } from "../docs/guide/run-page.js";
import { call, freePort, root, until } from "../harness.js";
import { type Forwarder, startForwarder } from "./forwarder.js";
import { furtherBlocks, handler, wayBlocks, workerImage } from "./page.js";
import { clusterStartMs, commandsOf, pythonCluster } from "./scene.js";
import { makeServerImage } from "./server-image.js";

/**
 * Follows docs/guide/kubernetes.md with the servers in the cluster, and goes on with what it has installed. The cluster
 * has neither a proxy for services nor names: forwarders stand for the former, and addresses for the latter.
 */
const serverImage = "registry.example/me/millrace:v1";
let cluster: TestCluster;
let postgres: TestPostgres;
let commands: string;
let databaseUrl: string;
/** Of the chart's Service. */
let url: string;
/** Where pods reach the API server. */
let apiUrl: string;
let learning: NodeJS.Timeout;
const forwarders: Forwarder[] = [];
beforeAll(async () => {
  cluster = await pythonCluster(workerImage, handler);
  makeServerImage(cluster, serverImage);
  postgres = await startPostgres();
  const { gateway } = cluster;
  const forward = async (...asked: Parameters<typeof startForwarder>) => {
    const forwarder = await startForwarder(...asked);
    forwarders.push(forwarder);
    return forwarder;
  };
  const at = (port: number | string) => () => [{ host: "127.0.0.1", port: Number(port) }];
  const database = await forward(gateway, at(postgres.port));
  const api = await forward(gateway, at(new URL(cluster.url).port));
  const service = await forward(gateway, () => known);
  learning = setInterval(learnAddresses, 1_000);
  url = `http://${gateway}:${service.port}`;
  apiUrl = `https://${gateway}:${api.port}`;
  writeFileSync(
    join(cluster.home, "values.json"),
    JSON.stringify({
      workers: { url },
      env: [
        { name: "KUBERNETES_SERVICE_HOST", value: gateway },
        { name: "KUBERNETES_SERVICE_PORT", value: String(api.port) },
      ],
      resources: { requests: { cpu: "50m", memory: "256Mi" } },
    }),
  );
  const asHere = new URL(postgres.url());
  asHere.host = `${gateway}:${database.port}`;
  databaseUrl = asHere.href;
  commands = commandsOf(cluster, {
    kubectl: `${await builtProgram()} kubectl`,
    helm: await builtHelm(),
  });
}, clusterStartMs);
afterAll(async () => {
  clearInterval(learning);
  for (const each of forwarders) await each.close();
  await cluster?.end();
  await postgres?.end();
});

interface Pod {
  readonly metadata: { readonly name: string };
  readonly status: object;
}
const get = (...args: string[]) => JSON.parse(cluster.kubectl("get", ...args, "--output=json")).items;
const serverPods = (): Pod[] => get("pods", "--namespace=millrace");

/** The addresses behind the chart's Service, as a proxy for services learns them. */
let known: { host: string; port: number }[] = [];
function learnAddresses(): void {
  const slices = get("endpointslices", "--namespace=millrace", "--selector=kubernetes.io/service-name=millrace");
  type Slice = { endpoints: { addresses: string[]; conditions: { ready: boolean } }[]; ports: { port: number }[] };
  known = slices.flatMap(({ endpoints, ports }: Slice) =>
    (endpoints ?? []).flatMap(({ addresses, conditions }) =>
      conditions.ready ? addresses.map((host) => ({ host, port: ports[0]?.port ?? 0 })) : [],
    ),
  );
}

it("the page leads from an empty cluster to a COMPLETED job", { timeout: 300_000 }, async () => {
  const port = String(await freePort());
  const { code, output, report } = await runPage(wayBlocks("inside"), {
    startsService: true,
    env: { PATH: commands, KUBECONFIG: cluster.kubeconfig },
    instead: {
      "postgres://millrace:password@database.example:5432/millrace": databaseUrl,
      "--wait \\": `--wait --timeout 150s --values ${join(cluster.home, "values.json")} \\`,
      "8000:8000": `${port}:8000`,
      "http://127.0.0.1:8000": `http://127.0.0.1:${port}`,
    },
  });
  const stateOf = ({ metadata, status }: Pod) =>
    `${JSON.stringify(status)}\n${cluster.kubectl("logs", metadata.name, "--namespace=millrace")}`;
  expect(code, code === 0 ? "" : `${report}\n${serverPods().map(stateOf).join("\n")}`).toBe(0);
  const printed = [...output.values()].join("\n");
  expect(printed, report).toContain('"status":"COMPLETED"');
  expect(printed, report).toMatch(/millrace-\w{14} +1\/1 +Running/);
  expect(printed, report).toContain("hello from the pod");
});

/** Calls the service as its administrator. */
function caller() {
  const secret = cluster.kubectl("get", "secret", "millrace", "--namespace=millrace", "--output=json");
  const key = Buffer.from(JSON.parse(secret).data.MILLRACE_API_KEY, "base64").toString();
  const ask = (method: string, path: string, body?: object) =>
    call({ url, key }, method, path, body, { connection: "close" });
  return Object.assign(ask, { key });
}

it("no request and no job notices that its servers are replaced", { timeout: 240_000 }, async () => {
  const ask = caller();
  const [{ id: endpoint }] = (await ask("GET", "/v1/endpoints")).body;
  const { id } = (await ask("POST", `/v2/${endpoint}/run`, { input: { text: "long", seconds: 40 } })).body;
  const status = async (): Promise<{ status: string | number }> => {
    const reply = await ask("GET", `/v2/${endpoint}/status/${id}`);
    return reply.status === 200 ? reply.body : { status: reply.status };
  };
  await until(async () => (await status()).status === "IN_PROGRESS", 60_000);

  const before = serverPods().map(({ metadata }) => metadata.name);
  cluster.kubectl("rollout", "restart", "deployment/millrace", "--namespace=millrace");
  const isReplaced = () =>
    serverPods().length === 2 && serverPods().every(({ metadata }) => !before.includes(metadata.name));
  const seen = new Set<unknown>();
  await until(async () => {
    seen.add((await status()).status);
    return isReplaced();
  }, 150_000);
  expect([...seen].filter((each) => each !== "IN_PROGRESS" && each !== "COMPLETED")).toEqual([]);
  await until(async () => (await status()).status === "COMPLETED", 60_000);
  expect(await status()).toMatchObject({ output: { echo: "long" }, retries: 0 });
});

it("sends requests of load balancing endpoints to its workers", { timeout: 120_000 }, async () => {
  const ask = caller();
  const code = "require('node:http').createServer((_, reply) => reply.end('from the pod')).listen(process.env.PORT)";
  const template = { name: "http", imageName: serverImage, isServerless: true, dockerEntrypoint: ["node"] };
  const { id: templateId } = (await ask("POST", "/v1/templates", { ...template, dockerStartCmd: ["-e", code] })).body;
  const settings = { name: "http", templateId, type: "LB", computeType: "CPU", vcpuCount: 1, workersMax: 1 };
  const { id } = (await ask("POST", "/v1/endpoints", { ...settings, scalerType: "REQUEST_COUNT", scalerValue: 4 }))
    .body;
  const key = ask.key;
  const reply = await fetch(`${url}/lb/${id}/any`, { headers: { authorization: `Bearer ${key}` } });
  expect([reply.status, await reply.text()]).toEqual([200, "from the pod"]);
  expect((await ask("DELETE", `/sdk/v1/endpoints/${id}`)).status).toBeLessThan(300);
});

it("runs workers in further clusters, its own among them", { timeout: 240_000 }, async () => {
  cluster.kubectl("create", "namespace", "cloud");
  cluster.kubectl("apply", "--namespace=cloud", `--filename=${join(root, "deploy/kubernetes/rights.yaml")}`);
  const account = "/var/run/secrets/kubernetes.io/serviceaccount";
  const token = cluster.kubectl("create", "token", "millrace", "--namespace=cloud");
  const file = join(cluster.home, "clusters.yaml");
  const kubeconfig = {
    clusters: [{ name: "this", cluster: { server: apiUrl, "certificate-authority": `${account}/ca.crt` } }],
    users: [
      { name: "servers", user: { tokenFile: `${account}/token` } },
      { name: "cloud", user: { token } },
    ],
    contexts: [
      { name: "rack", context: { cluster: "this", user: "servers", namespace: "millrace-workers" } },
      { name: "cloud", context: { cluster: "this", user: "cloud", namespace: "cloud" } },
    ],
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  const { code, report } = await runPage(furtherBlocks(), {
    startsService: true,
    env: { PATH: commands, KUBECONFIG: cluster.kubeconfig },
    instead: {
      "=clusters.yaml": `=${file}`,
      "--wait \\": "--wait --timeout 150s \\",
      "https://millrace.example.com": url,
    },
  });
  expect(code, report).toBe(0);
  const ask = caller();
  const [{ templateId }] = (await ask("GET", "/v1/endpoints")).body;
  for (const [place, namespace] of [
    ["cluster/cloud", "cloud"],
    ["cluster/rack", "millrace-workers"],
  ]) {
    const settings = { name: namespace, templateId, computeType: "CPU", vcpuCount: 1, place };
    const made = (await ask("POST", "/v1/endpoints", settings)).body;
    // a server that is being replaced would answer a request that waits
    const { id } = (await ask("POST", `/v2/${made.id}/run`, { input: { text: place } })).body;
    const job = async () => (await ask("GET", `/v2/${made.id}/status/${id}`)).body;
    await expect
      .poll(job, { timeout: 90_000, interval: 500 })
      .toMatchObject({ status: "COMPLETED", output: { echo: place } });
    const [worker] = (await ask("GET", `/v1/endpoints/${made.id}/workers`)).body;
    expect(cluster.kubectl("get", "pods", `--namespace=${namespace}`, "--output=name")).toContain(worker.id);
  }
});

it("its removal leaves the workers' namespace, with what is in it", { timeout: 90_000 }, async () => {
  const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
  execFileSync(await builtHelm(), ["uninstall", "millrace", "--namespace", "millrace", "--wait"], { env });
  expect(cluster.kubectl("get", "namespace", "millrace-workers", "--output=name")).toBe("namespace/millrace-workers");
  expect(get("deployments,roles", "--all-namespaces", "--selector=app.kubernetes.io/instance=millrace")).toEqual([]);
  // what guards workers that may still run
  expect(get("networkpolicies", "--namespace=millrace-workers")).toHaveLength(1);
});

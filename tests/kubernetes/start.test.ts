import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeKubeconfig } from "../../scripts/kubernetes/certificates.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { startPostgres } from "../../scripts/postgres.mjs";
import { freePort, startServer, type TestServer } from "../harness.js";
import { shared } from "../servers/cluster.js";
import { clusterSettings, clusterStartMs, namespace } from "./scene.js";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startCluster({ hasNode: false });
  cluster.kubectl("create", "namespace", namespace);
  cluster.kubectl("create", "serviceaccount", "weak", `--namespace=${namespace}`);
}, clusterStartMs);
afterAll(() => cluster?.end());

/** What a start says that gives up. */
async function said(settings: Record<string, string>): Promise<string> {
  const started = startServer({ ...(await clusterSettings(cluster)), ...settings });
  return started.then(
    async (server) => {
      await server.end();
      return "it started";
    },
    (error: Error) => error.message,
  );
}

it("A right that the account lacks is named, and so is the namespace", async () => {
  const roles = ["--verb=create,get,list,watch,patch,delete", "--resource=pods,secrets,persistentvolumeclaims"];
  cluster.kubectl("create", "role", "weak", ...roles, `--namespace=${namespace}`);
  const binding = ["--role=weak", `--serviceaccount=${namespace}:weak`];
  cluster.kubectl("create", "rolebinding", "weak", ...binding, `--namespace=${namespace}`);
  const token = cluster.kubectl("create", "token", "weak", `--namespace=${namespace}`);
  const api = new URL(cluster.url).port;
  const KUBECONFIG = writeKubeconfig(cluster.home, "weak", { api, user: { token } });
  expect(await said({ KUBECONFIG })).toContain(
    `Kubernetes: the account of this service may not get namespaces, nor get pods/log in namespace '${namespace}'`,
  );
});

it("That the account may not reach pods through the API server is said, unless it need not", async () => {
  const role = ["--verb=create,get,list,watch,patch,delete", "--resource=namespaces,pods,pods/log,secrets,pvc"];
  cluster.kubectl("create", "role", "direct", ...role, `--namespace=${namespace}`);
  cluster.kubectl("create", "serviceaccount", "direct", `--namespace=${namespace}`);
  const binding = ["--role=direct", `--serviceaccount=${namespace}:direct`];
  cluster.kubectl("create", "rolebinding", "direct", ...binding, `--namespace=${namespace}`);
  const token = cluster.kubectl("create", "token", "direct", `--namespace=${namespace}`);
  const api = new URL(cluster.url).port;
  const KUBECONFIG = writeKubeconfig(cluster.home, "direct", { api, user: { token } });
  const settings = { ...(await clusterSettings(cluster)), KUBECONFIG };
  const warning = "may not create pods/portforward, nor get pods/portforward in namespace";
  const server = await startServer(settings);
  await server.end();
  expect(server.log()).toContain(warning);
  expect(server.log()).toContain("MILLRACE_KUBERNETES_ROUTE=pods");

  const told = await startServer({ ...settings, MILLRACE_KUBERNETES_ROUTE: "pods" });
  await told.end();
  expect(told.log()).not.toContain("portforward");
  expect(await said({ KUBECONFIG, MILLRACE_KUBERNETES_ROUTE: "api-server" })).toContain(`service ${warning}`);
});

it("A cluster that has never answered is named", async () => {
  const KUBECONFIG = writeKubeconfig(cluster.home, "away", { api: await freePort(), user: { token: "any" } });
  expect(await said({ KUBECONFIG })).toMatch(/Kubernetes: the cluster at https:\/\/127\.0\.0\.1:\d+ does not answer/);
});

it("A missing namespace, file or address is named", async () => {
  expect(await said({ MILLRACE_KUBERNETES_NAMESPACE: "nowhere" })).toMatch(
    /Kubernetes: namespaces "nowhere" not found/,
  );
  expect(await said({ KUBECONFIG: join(cluster.home, "none") })).toMatch(
    /Kubernetes: KUBECONFIG names .* cannot be read/,
  );
  expect(await said({ MILLRACE_KUBERNETES_CONTEXT: "other" })).toMatch(/no context 'other'/);
  expect(await said({ MILLRACE_KUBERNETES_POD: join(cluster.home, "none.yaml") })).toMatch(/none\.yaml/);
  expect(await said({ MILLRACE_WORKER_URL: "" })).toMatch(/MILLRACE_KUBERNETES needs MILLRACE_WORKER_URL/);
});

it("Servers of one database whose clusters are in another order say so", { timeout: 120_000 }, async () => {
  const [name, user] = ["cluster", "user"].map((part) =>
    cluster.kubectl("config", "view", "--minify", `--output=jsonpath={.contexts[0].context.${part}}`),
  );
  cluster.kubectl("create", "namespace", "cloud");
  for (const [context, within] of [
    ["rack", namespace],
    ["cloud", "cloud"],
  ])
    cluster.kubectl(
      "config",
      "set-context",
      `${context}`,
      `--cluster=${name}`,
      `--user=${user}`,
      `--namespace=${within}`,
    );
  const postgres = await startPostgres();
  const join = async (MILLRACE_KUBERNETES_CONTEXT: string) =>
    startServer({
      ...shared,
      ...(await clusterSettings(cluster)),
      MILLRACE_KUBERNETES_NAMESPACE: "",
      MILLRACE_KUBERNETES_CONTEXT,
      MILLRACE_DATABASE_URL: postgres.url("postgres"),
    });
  const servers: TestServer[] = [];
  try {
    for (const contexts of ["rack,cloud", "rack,cloud", "cloud,rack"]) servers.push(await join(contexts));
    const said = '"message":"the clusters of this server are';
    const unlike = () => servers.map((each) => each.log().split(said).length - 1);
    // each of the first two about the third, and not about each other
    await expect.poll(unlike, { timeout: 20_000 }).toEqual([1, 1, 2]);
    expect(servers[0]?.log()).toMatch(
      /are rack, cloud, and those of the server at .* are cloud, rack: all servers need/,
    );
  } finally {
    for (const each of servers) await each.end();
    await postgres.end();
  }
});

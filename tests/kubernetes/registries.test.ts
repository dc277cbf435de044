import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { TestRegistry } from "../docker/registry.js";
import { allWorkersOf, complete, inState, phasesOf } from "../e2e/life.js";
import { uniqueName } from "../e2e/resources.js";
import { type Body, healthOf, statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, root, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn } from "./scene.js";

const local = "millrace.test/echo:1";
let cluster: TestCluster;
let registry: TestRegistry;
let server: TestServer;
beforeAll(async () => {
  const api = ["--enable-admission-plugins=AlwaysPullImages"];
  [cluster, registry] = await Promise.all([startCluster({ settings: { api } }), TestRegistry.open()]);
  makeNodeImage(cluster, local, { handler: join(root, "tests/docker/echo/handler.mjs") });
  cluster.kubectl("create", "namespace", namespace);
  server = await startServer(await clusterSettings(cluster), { podPullMs: 3_000, podLookMs: 1_000 });
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await registry?.close();
  await cluster?.end();
});

const settings = { computeType: "CPU", workersMax: 1, idleTimeout: 60 };
const wrong = "wrong-word";
const credentials = async (password: string): Promise<string> => {
  const given = { name: uniqueName(), username: "someone", password };
  return (await call(server, "POST", "/v1/containerregistryauth", given)).body.id;
};
/** The names of secrets with credentials. */
const pullSecrets = (): string[] => {
  const columns = "--output=jsonpath={range .items[*]}{.metadata.name}{'\\n'}{end}";
  const type = "--field-selector=type=kubernetes.io/dockerconfigjson";
  return cluster.kubectl("get", "secrets", `--namespace=${namespace}`, type, columns).split("\n").filter(Boolean);
};
const remove = async (...endpoints: string[]) => {
  for (const each of endpoints) await call(server, "DELETE", `/sdk/v1/endpoints/${each}`);
  await expect.poll(() => podsIn(cluster)).toEqual([]);
  // the cluster removes them with the pods that they belong to
  const left = () => cluster.kubectl("get", "secrets", `--namespace=${namespace}`, "--output=name");
  await expect.poll(left).toBe("");
};

describe.each(["basic", "bearer"] as const)("An image whose registry asks for credentials (%s)", (scheme) => {
  const secret = `word-of-${scheme}`;
  /** What clients were told of their jobs. */
  const statuses: Body[] = [];
  const seenStatus = async (endpoint: string, id: string): Promise<Body> => {
    const status = await statusOf(server, endpoint, id);
    statuses.push(status);
    return status;
  };
  /** Takes in a new image, which the node does not have yet. */
  const kept = (name: string) => {
    registry.gate = { scheme, username: "someone", password: secret };
    registry.welcomes = 0;
    return registry.keep(cluster, local, `team/${name}-${scheme}`);
  };
  /** Whatever the service and the cluster tell may be read by people who must not know credentials. */
  const toldOf = async (...endpoints: string[]): Promise<string> => {
    const audit = (await call(server, "GET", "/v1/audit?limit=100")).body;
    expect(JSON.stringify(audit)).toContain("registryAuth.create");
    const workers = await Promise.all(endpoints.map((each) => allWorkersOf(server, each)));
    const logs = endpoints.map((each) => `/v1/endpoints/${each}/logs`);
    const headers = { authorization: `Bearer ${server.key}` };
    const lines = await Promise.all(
      logs.map(async (path) => (await fetch(`${server.url}${path}`, { headers })).text()),
    );
    const objects = cluster.kubectl("get", "pods,events", `--namespace=${namespace}`, "--output=json");
    return JSON.stringify([audit, workers, lines, server.log(), objects, statuses]);
  };
  const expectNoneOf = (told: string, ...passwords: string[]) => {
    for (const password of passwords)
      for (const form of [password, Buffer.from(`someone:${password}`).toString("base64")])
        expect(told).not.toContain(form);
  };

  it("is pulled with the template's credentials, which go with its pod and are never told", async () => {
    const auth = await credentials(secret);
    const image = kept("right");
    const endpoint = await makeEndpoint(server, image, settings, { containerRegistryAuthId: auth });
    const done = await complete(server, endpoint, { text: "pulled" });
    expect(done.output).toEqual({ text: "pulled" });
    expect(registry.welcomes).toBeGreaterThan(0);
    expect(pullSecrets()).toEqual([expect.stringContaining(`millrace-${done.workerId}-`)]);
    const told = await toldOf(endpoint);
    expect(told).toContain(done.workerId);
    expectNoneOf(told, secret);

    // its node has the image now, but not for those without credentials
    const other = await makeEndpoint(server, image, settings);
    const id = await submit(server, other, {});
    const detail = async (): Promise<string> => (await seenStatus(other, id)).waitDetail ?? "";
    await expect.poll(detail).toContain("or asks for credentials");
    expectNoneOf(await toldOf(endpoint, other), secret);
    await remove(endpoint, other);
  }, 120_000);

  it("is not pulled with other credentials or without any, with the reason in words; new ones are tried at once", async () => {
    const image = kept("wrong");
    const auth = await credentials(wrong);
    const refused = await makeEndpoint(server, image, settings, { containerRegistryAuthId: auth });
    const without = await makeEndpoint(server, image, settings);
    const cases = [
      {
        endpoint: refused,
        id: await submit(server, refused, { text: "late" }),
        why: "the registry does not accept the",
      },
      { endpoint: without, id: await submit(server, without, {}), why: "or asks for credentials" },
    ];
    for (const { endpoint, id, why } of cases) {
      const says = (waitReason: string, words: string) =>
        until(async () => {
          const now = await seenStatus(endpoint, id);
          return now.waitReason === waitReason && now.waitDetail.includes(words) && now.waitDetail;
        }, 60_000);
      // its first start lasts for a while, and the reason is there from the first attempt on
      if (endpoint === refused) expect(await says("starting", "cannot be pulled yet")).toContain(why);
      expect(await says("start_failed", "could not be pulled")).toContain(why);
      expect(await healthOf(server, endpoint)).toMatchObject({
        jobs: { inQueue: 1, inProgress: 0 },
        workers: { ready: 0, idle: 0, running: 0 },
      });
      const ended = await inState(server, endpoint, "ended");
      expect(ended.exit).toMatchObject({ cause: "image", note: expect.stringContaining(why) });
      expect((await allWorkersOf(server, endpoint)).flatMap(phasesOf)).not.toContain("process started");
      await expect.poll(() => pullSecrets().filter((name) => name.includes(ended.id))).toEqual([]);
    }
    expect(registry.welcomes).toBe(0);
    const change = `mutation { updateRegistryAuth(input: { id: "${auth}", username: "someone", password: "${secret}" }) { id } }`;
    expect((await call(server, "POST", "/graphql", { query: change })).body.data.updateRegistryAuth.id).toBe(auth);
    await until(async () => (await statusOf(server, refused, cases[0]?.id as string)).status === "COMPLETED", 60_000);
    const told = await toldOf(refused, without);
    for (const words of ["starting", "start_failed", "cannot be pulled yet", "could not be pulled"])
      expect(told).toContain(words);
    expectNoneOf(told, wrong, secret);
    await remove(refused, without);
  }, 180_000);
});

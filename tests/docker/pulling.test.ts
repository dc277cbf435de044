import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { uniqueName } from "../e2e/resources.js";
import { call, root, startServer, type TestServer } from "../harness.js";
import { TestRegistry } from "./registry.js";

let engine: TestDocker;
let registry: TestRegistry;
let server: TestServer;
let image: string;
let foreign: string;
beforeAll(async () => {
  engine = await startDocker();
  registry = await TestRegistry.open();
  engine.makeImage("local:1", {
    programs: [process.execPath, "/bin/sh"],
    files: {
      "/app/worker": `${root}/packages/worker/dist`,
      "/app/handler.mjs": `${root}/tests/docker/echo/handler.mjs`,
    },
    changes: [`CMD ${JSON.stringify([process.execPath, "/app/worker/run-handler.js", "/app/handler.mjs"])}`],
  });
  image = registry.keep(engine, "local:1", "team/echo");
  foreign = registry.keep(engine, "local:1", "team/foreign", "s390x");
  engine.docker("rmi", "local:1");
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
});
afterAll(async () => {
  await server?.end();
  await registry?.close();
  await engine?.end();
});

async function submit(imageName: string, more: Record<string, unknown> = {}) {
  const made = { name: uniqueName(), imageName, isServerless: true, ...more };
  const template = await call(server, "POST", "/v1/templates", made);
  const endpoint = await call(server, "POST", "/v1/endpoints", { name: "a", templateId: template.body.id });
  const job = await call(server, "POST", `/v2/${endpoint.body.id}/run`, { input: { text: "pulled" } });
  const address = `/v2/${endpoint.body.id}`;
  return {
    detail: async () => (await call(server, "GET", `${address}/status/${job.body.id}`)).body.waitDetail,
    endpoint: endpoint.body.id as string,
    template: template.body.id as string,
    end: async () => (await call(server, "GET", `${address}/status-sync/${job.body.id}?wait=120000`)).body,
    remove: () => call(server, "DELETE", `/sdk/v1/endpoints/${endpoint.body.id}`),
  };
}

it("a missing image is pulled, and a job that waits for it shows the progress", async () => {
  registry.hold();
  const job = await submit(image);
  await expect
    .poll(job.detail, { timeout: 30_000 })
    .toMatch(/pulling the image '.*team\/echo:1': \d+ of \d+ MB so far/);
  registry.goOn();
  expect(await job.end()).toMatchObject({ status: "COMPLETED", output: { text: "pulled" } });
  await job.remove();
});

it("during a pull other workers are served, and the waiting worker can be given up", async () => {
  engine.docker("rmi", "-f", image);
  registry.hold();
  const job = await submit(image);
  await expect.poll(job.detail, { timeout: 30_000 }).toMatch(/pulling/);
  const other = await submit(join(root, "tests/docker/echo"));
  expect(await other.end()).toMatchObject({ status: "COMPLETED", output: { text: "pulled" } });
  await other.remove();
  await job.remove();
  const workers = async () => (await fetch(`${server.url}/metrics`)).text();
  await expect.poll(workers, { timeout: 20_000 }).not.toMatch(/^millrace_workers\{.*\} [1-9]/m);
  registry.goOn();
  const next = await submit(image);
  expect(await next.end()).toMatchObject({ status: "COMPLETED" });
  await next.remove();
});

describe.each(["basic", "bearer"] as const)("An image whose registry asks for credentials (%s)", (scheme) => {
  const secret = `word-of-${scheme}`;
  beforeEach(() => {
    engine.docker("rmi", "-f", image);
    registry.gate = { scheme, username: "someone", password: secret };
    registry.welcomes = 0;
  });
  afterEach(() => {
    registry.gate = undefined;
  });
  const credentials = async (password: string): Promise<string> => {
    const given = { name: uniqueName(), username: "someone", password };
    return (await call(server, "POST", "/v1/containerregistryauth", given)).body.id;
  };

  it("is pulled with the template's credentials, which are never logged", async () => {
    const job = await submit(image, { containerRegistryAuthId: await credentials(secret) });
    expect(await job.end()).toMatchObject({ status: "COMPLETED", output: { text: "pulled" } });
    expect(registry.welcomes).toBeGreaterThan(0);
    const base64 = Buffer.from(`someone:${secret}`).toString("base64");
    for (const told of [secret, base64]) expect(server.log()).not.toContain(told);
    await job.remove();
  });

  it("is not pulled with other credentials, or without any, with the reason shown; new ones are tried at once", async () => {
    const auth = await credentials("wrong-word");
    const job = await submit(image, { containerRegistryAuthId: auth });
    const other = await submit(image);
    await expect
      .poll(job.detail, { timeout: 60_000 })
      .toMatch(/does not accept the credentials of the template \(containerRegistryAuthId\)/);
    await expect
      .poll(other.detail, { timeout: 60_000 })
      .toMatch(/asks for credentials \(containerRegistryAuthId in the/);
    const change = `mutation { updateRegistryAuth(input: { id: "${auth}", username: "someone", password: "${secret}" }) { id } }`;
    expect((await call(server, "POST", "/graphql", { query: change })).body.data.updateRegistryAuth.id).toBe(auth);
    expect(await job.end()).toMatchObject({ status: "COMPLETED" });
    expect(server.log()).not.toContain("wrong-word");
    await Promise.all([job.remove(), other.remove()]);
  });
});

it("an image for another architecture is refused with a reason", async () => {
  const job = await submit(foreign);
  await expect
    .poll(job.detail, { timeout: 60_000 })
    .toMatch(/is for s390x, and this machine is \w+: build it for this one/);
  await job.remove();
});

it("a failed pull is retried, and the waiting job says why it failed", async () => {
  const job = await submit(`${registry.host}/nobody/nothing:1`);
  const starts = () => server.log().match(/nobody\/nothing:1.*could not be pulled/g)?.length ?? 0;
  await expect.poll(job.detail, { timeout: 60_000 }).toMatch(/no such image or tag/);
  await expect.poll(starts, { timeout: 60_000 }).toBeGreaterThan(2);
  await job.remove();
});

it("a missing tag is reported with the engine's message", async () => {
  const job = await submit(image.replace(/:1$/, ":2"));
  await expect.poll(job.detail, { timeout: 60_000 }).toMatch(/team\/echo:2' .*could not be pulled: .*manifest unknown/);
  await job.remove();
});

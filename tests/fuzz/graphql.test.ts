import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { type Body, reach, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer } from "../harness.js";
import { fuzz, type Verdict } from "./schemathesis.js";

const seed = Number(process.env.MILLRACE_TEST_FUZZ_SEED ?? 1);
const examples = Number(process.env.MILLRACE_TEST_FUZZ_EXAMPLES ?? 7);

let server: TestServer;
beforeAll(async () => {
  server = await startServer({
    MILLRACE_LOG_LEVEL: "error",
    MILLRACE_CONTAINERS: "off",
  });
});
afterAll(async () => {
  for (const undo of undos) await undo();
  await server?.end();
});

const undos: (() => Promise<void> | void)[] = [];
const ending = { onTestFinished: (undo: () => Promise<void> | void) => void undos.unshift(undo) };

/** An endpoint with a live worker, which queries see and none changes. */
async function makeLive(): Promise<string> {
  const settings = { computeType: "CPU", workersMin: 1, workersMax: 1 };
  const endpoint = await makeEndpoint(server, makeHandler(ending), settings);
  await reach(server, endpoint, await submit(server, endpoint, { echo: 1 }), "COMPLETED");
  return endpoint;
}

async function liveWorkers(endpoint: string): Promise<number> {
  const query = `{ myself { endpoint(id: "${endpoint}") { pods { desiredStatus } } } }`;
  const { body } = await call(server, "POST", "/graphql", { query });
  return body.data.myself.endpoint.pods.filter(({ desiredStatus }: Body) => desiredStatus === "RUNNING").length;
}

/** What queries may name: of what they delete there are several. */
async function makeNamed(): Promise<Record<string, string[]>> {
  const made = async (path: string, body: unknown) => (await call(server, "POST", `/v1/${path}`, body)).body.id;
  const several = (make: (n: number) => Promise<string>) => Promise.all(Array.from({ length: 6 }, (_, n) => make(n)));
  const imageName = "registry.example/image";
  const template: string = await made("templates", { name: "t", imageName });
  const [endpoint = "", ...endpoints] = await several((n) =>
    made("endpoints", { name: `e${n}`, templateId: template, workersMax: 0 }),
  );
  const [auth = "", ...auths] = await several((n) =>
    made("containerregistryauth", { name: `a${n}`, username: "u", password: "p" }),
  );
  const [pod = "", ...pods] = await several((n) => made("pods", { name: `p${n}`, imageName }));
  const names = await several(async (n) => {
    await made("templates", { name: `spare ${n}`, imageName });
    return `spare ${n}`;
  });
  return {
    id: [endpoint],
    endpointId: [endpoint],
    templateId: [template],
    podId: [pod],
    networkVolumeId: [await made("networkvolumes", { name: "v", size: 1, dataCenterId: "EU-RO-1" })],
    containerRegistryAuthId: [auth],
    gpuIds: ["ADA_24"],
    gpuTypeId: ["NVIDIA L4"],
    instanceId: ["cpu3c-1-2"],
    imageName: [imageName],
    name: ["fuzzed"],
    pubKey: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 someone@example"],
    "saveTemplate.id": [template],
    "podTemplate.id": [template],
    "deleteTemplate.templateName": names,
    "deleteEndpoint.id": endpoints,
    "podTerminate.podId": pods,
    "updateRegistryAuth.id": [auth],
    "deleteRegistryAuth.registryAuthId": auths,
    "secretDelete.id": await several((n) => made("secrets", { name: `s${n}`, value: "hidden" })),
  };
}

/** Of what the hosted service alone has, these two are refused like mutations. */
const refused = ["Query.flashApp", "Query.flashAppByName"];
const isQuery = (name: string) => name.startsWith("Query.") && !refused.includes(name);

/** A run in which queries do not fit, or meet only refusals, would prove nothing. */
function expectEachToRun(tally: Verdict["tally"]) {
  const all = Object.entries(tally);
  const ran = all.filter(([, counts]) => Object.keys(counts).some((code) => !code.startsWith("GRAPHQL_")));
  const works = all.filter(([, counts]) => "OK" in counts).map(([name]) => name);
  expect(ran.map(([name]) => name)).toEqual(Object.keys(tally));
  expect(Object.keys(tally).filter((name) => isQuery(name) && !works.includes(name))).toEqual([]);
  expect(works.filter((name) => !isQuery(name)).length).toBeGreaterThan(5);
}

it("GraphQL runs every query that fits its schema, or refuses it in words", { timeout: 600_000 }, async () => {
  console.log(`fuzzing /graphql with seed ${seed}`);
  const document = "/graphql";
  const live = await makeLive();
  const { code, output, tally } = await fuzz(server, {
    document,
    seed,
    examples,
    known: await makeNamed(),
    webhook: "",
  });
  console.log(
    Object.entries(tally)
      .map(([name, counts]) => `${name} ${JSON.stringify(counts)}`)
      .join("\n"),
  );
  expect(code, output).toBe(0);
  expectEachToRun(tally);
  const { status, body } = await call(server, "POST", "/graphql", { query: "{ myself { id } }" });
  expect([status, body.errors]).toEqual([200, undefined]);
  expect(await liveWorkers(live)).toBe(1);
});

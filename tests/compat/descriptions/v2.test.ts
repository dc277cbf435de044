import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../../harness.js";
import { v2Differences } from "./differences.js";
import type { Operation } from "./facts.js";
import { v2 } from "./v2-facts.js";
import {
  acceptedMisfits,
  ask,
  expectFields,
  expectStatus,
  fieldOf,
  type Ground,
  isCreation,
  kindOf,
  refusedWords,
  rowsOf,
  wrongQueries,
} from "./walk.js";

let server: TestServer;
let ground: Ground;
let count = 0;
beforeAll(async () => {
  const settings = { MILLRACE_LOCAL_PROCESSES: "off", MILLRACE_CONTAINERS: "off", MILLRACE_LOG_LEVEL: "error" };
  server = await startServer(settings);
  ground = { server, prefix: "/v2", filled, body, refusals: [400, 422] };
});
afterAll(() => server.end());

const image = "registry.example/image";
/** Bodies that make a resource, by the first word of its path. */
const bodies: Readonly<Record<string, () => object>> = {
  serverless: () => ({
    name: "e",
    image,
    type: "QUEUE",
    gpu: { pools: ["ADA_24"] },
    workers: { max: 0 },
    scaling: { type: "QUEUE_DELAY", queueDelay: 4 },
  }),
  pods: () => ({ name: "p", image, gpu: { id: "NVIDIA L4" } }),
  templates: () => ({ name: `t${count++}`, image }),
  "network-volumes": () => ({ name: "v", size: 10, dataCenter: "EU-RO-1" }),
  registries: () => ({ name: `r${count++}`, username: "u", password: "p" }),
};

async function made(kind: string) {
  const { status, body: shown } = await call(server, "POST", `/v2/${kind}`, bodies[kind]?.());
  expect(status, JSON.stringify(shown)).toBe(201);
  return shown;
}

const inCatalog: Readonly<Record<string, string>> = { gpus: "NVIDIA%20L4", cpus: "cpu3g", datacenters: "EU-RO-1" };
/** A resource that changes may use again; deletions get one of their own. */
const kept = new Map<string, string>();
async function filled({ method, path }: Operation): Promise<string> {
  if (!path.includes("{")) return path;
  const [, kind = "", what = ""] = path.split("/");
  if (kind === "catalog") return path.replace("{id}", inCatalog[what] ?? "");
  const id = method === "DELETE" ? undefined : kept.get(kind);
  const { id: own } = id === undefined ? await made(kind) : { id };
  if (method !== "DELETE") kept.set(kind, own);
  return path.replace("{id}", own);
}

async function body(operation: Operation): Promise<object> {
  if (isCreation(operation)) return bodies[kindOf(operation)]?.() ?? {};
  // what is inside an object is sent with all of it
  return kindOf(operation) === "serverless" ? { gpu: { pools: ["ADA_24"] } } : {};
}

const rows = rowsOf(v2);
// which action is right depends on the pod
const withWords = rows.withWords.filter(({ operation }) => !operation.path.endsWith("/action"));
const { absent: empty } = v2Differences;

describe("Each operation of the public description of REST v2", () => {
  it.each(rows.all)("works, and shows what it promises: $name", async ({ operation }) => {
    const path = await filled(operation);
    const sent = operation.path.endsWith("/action") ? { action: "stop" } : await body(operation);
    const answer = await ask(ground, operation, path, operation.body ? sent : undefined);
    expectStatus(answer, operation);
    if (!operation.reply) return;
    const shown = operation.envelope ? answer.body[operation.envelope] : [answer.body];
    expect(shown.length).toBeGreaterThan(0);
    for (const each of shown) expectFields(each, operation.reply, empty[kindOf(operation)]);
    if (!isCreation(operation)) return;
    const defaults = Object.entries(operation.body ?? {}).filter(
      ([name, fact]) => fact.default !== undefined && fieldOf(sent, name) === undefined,
    );
    const found = Object.fromEntries(defaults.map(([name]) => [name, fieldOf(answer.body, name)]));
    expect(found).toEqual(Object.fromEntries(defaults.map(([name, fact]) => [name, fact.default])));
  });

  it.each(rows.all)("needs a valid key, and knows only what is there: $name", async ({ operation }) => {
    const path = operation.path.replace("{id}", "unknown0000000");
    const sent = operation.path.endsWith("/action") ? { action: "stop" } : await body(operation);
    const stranger = { ...server, key: "mr_nobody" };
    const refused = await call(stranger, operation.method, `/v2${path}`, operation.body ? sent : undefined);
    expect([refused.status, refused.headers.get("content-type")]).toEqual([
      401,
      expect.stringContaining("application/problem+json"),
    ]);
    expectFields(refused.body, { title: { is: "text" }, status: { is: "whole" }, detail: { is: "text" } });
    if (!operation.path.includes("{")) return;
    const unknown = await ask(ground, operation, path, operation.body ? sent : undefined);
    expect([unknown.status, unknown.body.status]).toEqual([404, 404]);
  });

  it.each(rows.withBody)("refuses what a field may not be, and names the field: $name", async ({ operation }) => {
    expect(await acceptedMisfits(ground, operation)).toEqual([]);
  });

  it.each(withWords)("takes every word that a field may be: $name", async ({ operation }) => {
    expect(await refusedWords(ground, operation)).toEqual([]);
  });

  it.each(rows.withQuery)("takes its queries, and names an unknown word: $name", async ({ operation }) => {
    const values = { startTime: "2026-01-01T00:00:00Z", endTime: "2026-02-01T00:00:00Z", lastN: "3", count: "1" };
    const more = { vcpuCount: "4", minCudaVersion: "12.8" };
    expect(await wrongQueries(ground, operation, { ...values, ...more })).toEqual([]);
  });

  it("opens logs, and names an unknown source", async () => {
    const path = await filled({ method: "GET", path: "/pods/{id}/logs", status: 200 });
    const headers = { authorization: `Bearer ${server.key}` };
    for (const query of ["", "?source=container", "?source=system", "?tail=10", "?since=2026-01-01T00:00:00Z"]) {
      const leaving = new AbortController();
      const reply = await fetch(`${server.url}/v2${path}${query}`, { headers, signal: leaving.signal });
      expect([query, reply.status, reply.headers.get("content-type")]).toEqual([
        query,
        200,
        expect.stringContaining("text/event-stream"),
      ]);
      leaving.abort();
    }
    const { status, body: problem } = await call(server, "GET", `/v2${path}?source=elsewhere`);
    expect([400, 422]).toContain(status);
    expect(problem.detail).toContain("source");
  });

  it("makes no delegations, in words", async () => {
    const made = await call(server, "POST", "/v2/registries/delegations", { resource: "arn:aws:ecr:a:b" });
    expect([made.status, made.body]).toMatchObject([400, { code: "NOT_OFFERED_HERE" }]);
    expect((await call(server, "DELETE", "/v2/registries/delegations/unknown")).status).toBe(404);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../../harness.js";
import { v1Differences } from "./differences.js";
import type { Operation } from "./facts.js";
import { v1 } from "./v1-facts.js";
import {
  acceptedMisfits,
  ask,
  expectFields,
  expectStatus,
  type Ground,
  isCreation,
  kindOf,
  refusedWords,
  rowsOf,
  wrongQueries,
} from "./walk.js";

let server: TestServer;
let ground: Ground;
let templateId: string;
let count = 0;
beforeAll(async () => {
  server = await startServer({
    MILLRACE_LOCAL_PROCESSES: "off",
    MILLRACE_CONTAINERS: "off",
    MILLRACE_LOG_LEVEL: "error",
  });
  ground = { server, prefix: "/v1", filled, body, refusals: [400] };
  templateId = (await made("templates")).id;
});
afterAll(() => server.end());

/** Bodies that make a resource, by the first word of its path. */
const bodies: Readonly<Record<string, () => object>> = {
  endpoints: () => ({ templateId, workersMax: 0 }),
  templates: () => ({ name: `t${count++}`, imageName: "registry.example/image" }),
  networkvolumes: () => ({ name: "v", size: 10, dataCenterId: "EU-RO-1" }),
  containerregistryauth: () => ({ name: `a${count++}`, username: "u", password: "p" }),
  pods: () => ({ imageName: "registry.example/image" }),
};

async function made(kind: string) {
  const { status, body } = await call(server, "POST", `/v1/${kind}`, bodies[kind]?.());
  expect([200, 201], JSON.stringify(body)).toContain(status);
  return body;
}

/** A resource that changes may use again; deletions get one of their own. */
const kept = new Map<string, string>();
async function filled(operation: Operation): Promise<string> {
  if (!operation.path.includes("{")) return operation.path;
  const kind = kindOf(operation);
  const id = operation.method === "DELETE" ? undefined : kept.get(kind);
  const { id: own } = id === undefined ? await made(kind) : { id };
  if (operation.method !== "DELETE") kept.set(kind, own);
  if (kind === "endpoints" && operation.method === "DELETE")
    await call(server, "PATCH", `/v1/endpoints/${own}`, { workersMin: 0, workersMax: 0 });
  return operation.path.replace(/\{\w+\}/, own);
}

async function body(operation: Operation): Promise<object> {
  return isCreation(operation) ? (bodies[kindOf(operation)]?.() ?? {}) : {};
}

const rows = rowsOf(v1);
const { absent, defaultsNotShown, refusedWords: refusedQueries } = v1Differences;

describe("Each operation of the public description of REST v1", () => {
  it.each(rows.all)("works, and shows what it promises: $name", async ({ operation }) => {
    const path = await filled(operation);
    const sent = operation.body ? await body(operation) : undefined;
    const answer = await ask(ground, operation, path, sent);
    expectStatus(answer, operation);
    if (!operation.reply) return;
    if (operation.isList) expect(answer.body.length).toBeGreaterThan(0);
    const kind = kindOf(operation);
    for (const each of operation.isList ? answer.body : [answer.body])
      expectFields(each, operation.reply, absent[kind]);
    if (!isCreation(operation)) return;
    const defaults = Object.entries(operation.body ?? {}).filter(
      ([name, fact]) =>
        fact.default !== undefined && !(name in (sent ?? {})) && !(`${kind}.${name}` in defaultsNotShown),
    );
    const shown = Object.fromEntries(defaults.map(([name]) => [name, answer.body[name]]));
    expect(shown).toEqual(Object.fromEntries(defaults.map(([name, fact]) => [name, fact.default])));
  });

  it.each(rows.all)("needs a valid key, and knows only what is there: $name", async ({ operation, name }) => {
    const path = operation.path.replace(/\{\w+\}/, "unknown0000000");
    const sent = operation.body ? await body(operation) : undefined;
    const stranger = { ...server, key: "mr_nobody" };
    expect((await call(stranger, operation.method, `/v1${path}`, sent)).status).toBe(401);
    const unknown = name === "DELETE /networkvolumes/{networkVolumeId}" ? 400 : 404; // by the contract
    if (operation.path.includes("{")) expect((await ask(ground, operation, path, sent)).status).toBe(unknown);
  });

  it.each(rows.withBody)("refuses what a field may not be, and names the field: $name", async ({ operation }) => {
    expect(await acceptedMisfits(ground, operation)).toEqual([]);
  });

  it.each(rows.withWords)("takes every word that a field may be: $name", async ({ operation }) => {
    expect(await refusedWords(ground, operation)).toEqual([]);
  });

  it.each(rows.withQuery)("takes its queries, and names an unknown word: $name", async ({ operation }) => {
    const at = { startTime: "2026-01-01T00:00:00Z", endTime: "2026-02-01T00:00:00Z" };
    expect(await wrongQueries(ground, operation, at, refusedQueries)).toEqual([]);
  });
});

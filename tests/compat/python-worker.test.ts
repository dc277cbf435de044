import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import * as stock from "./stock.js";

let server: TestServer;
/** One warm worker with the plain handler, shared by the tests that leave it unchanged. */
let plain: stock.Deployment;
let streaming: stock.Deployment;

beforeAll(async () => {
  server = await startServer();
  const warm = { workersMin: 1, idleTimeout: 120 };
  plain = await stock.deploy(server, "plain", warm);
  streaming = await stock.deploy(server, "streaming", warm);
});

afterAll(async () => {
  await server?.end();
  stock.removeFolders();
});

const deploy = (name: string, settings = {}, env = {}) => stock.deploy(server, name, settings, env);
const submit = (to: stock.Deployment, input: Record<string, unknown>, more = {}) =>
  stock.submit(server, to.id, input, more);
const settled = (of: stock.Deployment, job: string, withinMs?: number) => stock.settled(server, of.id, job, withinMs);
const ran = (on: stock.Deployment, input: Record<string, unknown>) => stock.ran(server, on.id, input);
const chunksOf = async (of: stock.Deployment, job: string) =>
  (await stock.chunks(server, of.id, job)).map(({ output }) => output);

describe.concurrent("the output of a stock handler", () => {
  it.each([
    ["an object", { text: "wörd", list: [1, 2.5, null], nested: { deep: true } }],
    ["a string", "text"],
    ["an empty string", ""],
    ["false", false],
    ["zero", 0],
    ["an empty list", []],
    ["a list of objects", [{ a: 1 }, {}]],
  ])("may be %s", async (_name, value) => {
    const job = await ran(plain, { do: "value", value });
    expect(job).toMatchObject({ status: "COMPLETED", output: value, retries: 0 });
    expect(job.workerId).toMatch(/^[a-z0-9]{14}$/);
    expect(job).not.toHaveProperty("error");
  });

  it.each(["none", "empty"])("is absent from a completed job's status when the handler returns %s", async (kind) => {
    const job = await ran(plain, { do: kind });
    expect(job.status).toBe("COMPLETED");
    expect(job).not.toHaveProperty("output");
    expect(job).not.toHaveProperty("error");
  });

  it("may be an error, with or without an output", async () => {
    const alone = await ran(plain, { do: "value", value: { error: "no such model" } });
    expect(alone).toMatchObject({ status: "FAILED", error: "no such model", retries: 0 });
    expect(alone).not.toHaveProperty("output");
    const beside = await ran(plain, { do: "value", value: { error: "no such model", tried: 3 } });
    expect(beside).toMatchObject({ status: "FAILED", error: "no such model", output: { tried: 3 } });
    const structured = await ran(plain, { do: "value", value: { error: { code: 7 } } });
    expect(structured.status).toBe("FAILED");
    expect(JSON.parse(structured.error)).toEqual({ code: 7 });
  });

  it("is the text of the error that the handler raised, and the job is not tried again", async () => {
    const job = await ran(plain, { do: "fail", text: "out of cheese" });
    expect(job).toMatchObject({ status: "FAILED", retries: 0 });
    for (const part of ["ValueError", "out of cheese"]) expect(job.error).toContain(part);
    expect(job).not.toHaveProperty("output");
  });

  it("fails with a clear reason when Python writes invalid JSON", async () => {
    const job = await ran(plain, { do: "nan" });
    expect(job).toMatchObject({ status: "FAILED", retries: 0 });
    expect(job.error).toMatch(/JSON|NaN/);
    expect(job.error).toMatch(/\d/);
    expect(job).not.toHaveProperty("output");
  });

  it("fails with a clear reason over its limit", async () => {
    const job = await ran(plain, { do: "long", length: 21 * 2 ** 20 });
    expect(job).toMatchObject({ status: "FAILED", retries: 0 });
    expect(job.error).toMatch(/20 ?MB|limit|large|long/i);
    expect(job).not.toHaveProperty("output");
  });

  it.each(["set, then an object"])(
    "fails with a clear reason after three starts when Python can't serialise it (a %s)",
    async () => {
      const own = await deploy("plain");
      const job = await ran(own, { do: "unserialisable" });
      expect(job.status).toBe("FAILED");
      expect(job.error).toMatch(/the worker finished without reporting a result/i);
      expect(own.notes()).toEqual(Array(3).fill("unserialisable"));
      expect(await ran(own, { do: "value", value: 1 })).toMatchObject({ status: "COMPLETED", output: 1 });
    },
  );
});

describe.concurrent("a stock handler", () => {
  it("gets its id, its input and nothing else", async () => {
    expect(await ran(plain, { do: "keys" })).toMatchObject({ status: "COMPLETED", output: ["id", "input"] });
  });

  it("shows its progress while it runs, and afterwards only its result", async () => {
    const job = await submit(plain, { do: "progress", file: "go-on" });
    const half = await until(async () => {
      const status = await stock.statusOf(server, plain.id, job);
      return status.output !== undefined && status;
    }, 45_000);
    expect(half).toMatchObject({ status: "IN_PROGRESS", output: { percent: 50 } });
    writeFileSync(join(plain.dir, "go-on"), "");
    expect(await settled(plain, job)).toMatchObject({ status: "COMPLETED", output: "done" });
  });

  it("keeps its progress out of a job that ended without output", async () => {
    const own = await deploy("plain");
    const job = await submit(own, { do: "progress", file: "never-there" }, { policy: { executionTimeout: 5_000 } });
    const ended = await settled(own, job);
    expect(ended.status).toBe("TIMED_OUT");
    expect(ended).not.toHaveProperty("output");
  });

  it("writes lines to the worker's log, marked with the job if the package logs them", async () => {
    const mark = `mark-${Math.random().toString(36).slice(2)}`;
    const job = await submit(plain, { do: "log", mark });
    expect((await settled(plain, job)).status).toBe("COMPLETED");
    const lines = await until(() => {
      const found = linesWith(server.dataDir, mark);
      return found.length >= 2 && found;
    });
    expect(lines.some((line) => line.includes(`a printed line ${mark}`))).toBe(true);
    expect(lines.find((line) => line.includes(`a logged line ${mark}`))).toContain(job);
    const shown = async (query: string) => {
      const reply = await fetch(`${server.url}/v1/endpoints/${plain.id}/logs?format=ndjson&tail=1000${query}`, {
        headers: { authorization: `Bearer ${server.key}` },
      });
      const all = (await reply.text()).split("\n").filter((line) => line.includes(mark));
      return all.map((line) => JSON.parse(line));
    };
    const logged = { jobId: job, message: `a logged line ${mark}`, level: "INFO", stream: "stdout" };
    expect(await shown("")).toMatchObject([{ text: `a printed line ${mark}` }, logged]);
    expect(await shown(`&jobId=${job}`)).toMatchObject([logged]);
  });

  it("finds the protocol's variables and the template's in its environment", async () => {
    const own = await deploy("plain", {}, { GREETING: "hello", RUNPOD_ENDPOINT_ID: "x" });
    const names = [
      "RUNPOD_POD_ID",
      "RUNPOD_ENDPOINT_ID",
      "RUNPOD_PING_INTERVAL",
      "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS",
      "RUNPOD_SKIP_GPU_CHECK",
      "RUNPOD_DEBUG_LEVEL",
      "GREETING",
      "MILLRACE_API_KEY",
    ];
    const job = await ran(own, { do: "environment", names });
    expect(job.output).toEqual({
      RUNPOD_POD_ID: job.workerId,
      RUNPOD_ENDPOINT_ID: own.id,
      RUNPOD_PING_INTERVAL: "4000",
      RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: "true",
      RUNPOD_SKIP_GPU_CHECK: "true",
      RUNPOD_DEBUG_LEVEL: "INFO",
      GREETING: "hello",
      MILLRACE_API_KEY: null,
    });
  });

  it("is found without a start command, and run in its folder by the folder's own environment", async () => {
    const { dir, env } = stock.handlerFolder("plain");
    symlinkSync(stock.venv(), join(dir, ".venv"));
    const id = await makeEndpoint(server, dir, { computeType: "CPU", workersMax: 1 }, { env });
    const { output } = await stock.ran(server, id, { do: "where" });
    expect(output.executable).toBe(join(dir, ".venv/bin/python"));
    expect(output.folder).toBe(dir);
    expect(output.home.startsWith(server.dataDir)).toBe(true);
  });

  it("works even if its home holds a key for another service", async () => {
    const home = stock.newFolder();
    mkdirSync(join(home, ".runpod"));
    writeFileSync(join(home, ".runpod/config.toml"), '[default]\napi_key = "a-key-for-elsewhere"\n');
    const own = await deploy("plain", {}, { HOME: home });
    expect(await ran(own, { do: "where" })).toMatchObject({ status: "COMPLETED", output: { home } });
    expect(await ran(own, { do: "fail", text: "on purpose" })).toMatchObject({ status: "FAILED" });
    expect(linesWith(server.dataDir, "a-key-for-elsewhere")).toEqual([]);
    expect(server.log()).not.toContain("a-key-for-elsewhere");
  });
});

describe.concurrent("a stock generator", () => {
  it("streams its chunks, and completes with an empty list", async () => {
    const job = await submit(streaming, { values: ["a", 1, { b: null }, [], false, null] });
    expect(await chunksOf(streaming, job)).toEqual(["a", 1, { b: null }, [], false, null]);
    expect(await settled(streaming, job)).toMatchObject({ status: "COMPLETED", output: [] });
  });

  it("also delivers its chunks as the contract's bare array", async () => {
    const job = await submit(streaming, { values: ["a", "b"] });
    await settled(streaming, job);
    const first = await call(server, "GET", `/v2/${streaming.id}/stream/${job}`);
    expect(first.body.map((chunk: stock.Said) => [chunk.output, chunk.metrics.stream_index])).toEqual([
      ["a", 0],
      ["b", 1],
    ]);
    expect((await call(server, "GET", `/v2/${streaming.id}/stream/${job}`)).body).toEqual([]);
  });

  it("keeps the chunks before an error that it raises or yields", async () => {
    const raised = await submit(streaming, { values: [1, 2], fail: "gone wrong" });
    expect(await chunksOf(streaming, raised)).toEqual([1, 2]);
    const end = await settled(streaming, raised);
    expect(end).toMatchObject({ status: "FAILED", retries: 0 });
    expect(end.error).toContain("gone wrong");
    const yielded = await submit(streaming, { values: [1], error: "a bad chunk" });
    expect(await chunksOf(streaming, yielded)).toEqual([1]);
    expect(await settled(streaming, yielded)).toMatchObject({ status: "FAILED", error: "a bad chunk" });
  });

  it("loses only the chunk that is not JSON", async () => {
    const job = await submit(streaming, { values: ["before"], nan: true });
    expect(await chunksOf(streaming, job)).toEqual(["before", "after"]);
    expect(await settled(streaming, job)).toMatchObject({ status: "COMPLETED" });
  });

  it("keeps equal chunks apart", async () => {
    const job = await submit(streaming, { values: Array(40).fill("the same token") });
    expect(await chunksOf(streaming, job)).toEqual(Array(40).fill("the same token"));
  });

  it("aggregates on request, and still streams (async generator)", async () => {
    const own = await deploy("aggregating");
    const values = ["a", { b: 1 }, 3];
    const job = await submit(own, { values, pause: 0.2 });
    expect(await chunksOf(own, job)).toEqual(values);
    expect(await settled(own, job)).toMatchObject({ status: "COMPLETED", output: values });
  });
});

/** The lines that contain `text` in all files below a folder. */
function linesWith(folder: string, text: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : [];
  return names.flatMap((name) => {
    const path = join(folder, name);
    try {
      if (!statSync(path).isFile() || statSync(path).size > 20_000_000 || /\.(db|sqlite)/.test(name)) return [];
      return readFileSync(path, "latin1")
        .split("\n")
        .filter((line) => line.includes(text));
    } catch {
      return [];
    }
  });
}

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { logBytes } from "./machine/logs.js";
import { isAlive } from "./machine/processes.js";
import { Scene, stockPython } from "./scene.js";

let server: TestServer;
let scene: Scene;
beforeAll(async () => {
  server = await startServer();
  scene = new Scene();
});
afterEach(async () => {
  for (const { id } of (await call(server, "GET", "/v1/endpoints")).body) {
    await call(server, "DELETE", `/sdk/v1/endpoints/${id}`);
  }
});
afterAll(async () => {
  await server?.end();
  scene?.end();
});

const statusOf = async (endpoint: string, job: string) =>
  (await call(server, "GET", `/v2/${endpoint}/status/${job}`)).body;

/** A worker that writes long, distinct lines as fast as it can while its server is away. */
const spinner = `
const take = process.env.RUNPOD_WEBHOOK_GET_JOB.replace("$ID", process.env.RUNPOD_POD_ID) + "&job_in_progress=0";
for (let n = 0; ; n++) {
  const reply = await fetch(take).catch(() => undefined);
  await reply?.text();
  const lines = Array.from({ length: 20 }, (_, at) => n + "." + at + "x".repeat(6_000));
  if (!reply) process.stderr.write(lines.join("\\n") + "\\n");
}
`;

/** Two files of 4 MB, and the data collected between two writes. */
const logBytesMax = 9 * 2 ** 20;
const awayMs = 6_000;

/** Takes the server away for some seconds, and checks the size of its workers' logs. */
async function expectBoundedLogs(): Promise<void> {
  await server.kill();
  let most = 0;
  const backAt = Date.now() + awayMs;
  await until(() => {
    most = Math.max(most, ...logBytes(server.dataDir).values());
    return Date.now() > backAt;
  });
  await server.restart();
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(logBytesMax);
}

async function submit(endpoint: string, input: Record<string, unknown>): Promise<string> {
  const made = await call(server, "POST", `/v2/${endpoint}/run`, { input });
  expect(made.status).toBe(200);
  return made.body.id;
}

describe("while the server is away after a kill -9", () => {
  it("workers continue their jobs, and their results are accepted when it is back", async () => {
    const { endpoint } = await scene.own(server, { workersMax: 2, scalerType: "REQUEST_COUNT", scalerValue: 1 });
    // One job ends while the server is away, the other after its return.
    const jobs = [
      await submit(endpoint, { key: "short", ms: 2_000, fate: "return" }),
      await submit(endpoint, { key: "long", ms: 5_000, fate: "return" }),
    ];
    const runsOf = () => scene.runs().filter(({ job }) => jobs.includes(job));
    await until(() => runsOf().length === 2);
    await server.kill();
    await until(() => runsOf().some(({ key, endedAt }) => key === "short" && endedAt !== undefined));
    expect(runsOf().filter(({ endedAt }) => endedAt === undefined)).toHaveLength(1);
    await server.restart();
    const ends = await until(async () => {
      const states = await Promise.all(jobs.map((job) => statusOf(endpoint, job)));
      return states.every(({ status }) => status === "COMPLETED") && states;
    });
    for (const { id, retries, workerId, output } of ends) {
      const [run, ...again] = runsOf().filter(({ job }) => job === id);
      expect(again).toEqual([]);
      expect({ retries, workerId, run: output.run }).toEqual({ retries: 0, workerId: run?.worker, run: run?.run });
      expect(isAlive(run?.pid ?? 0)).toBe(true); // its worker was kept
    }
  });

  it("a worker that dies is found missing at the next start, and its job is given back", async () => {
    const { endpoint } = await scene.own(server, { workersMax: 1 });
    const job = await submit(endpoint, { key: "orphan", ms: 3_000, fate: "return" });
    const first = await until(() => scene.runs().find((run) => run.job === job));
    await server.kill();
    process.kill(first.pid, "SIGKILL");
    await until(() => !isAlive(first.pid));
    await server.restart();
    const end = await until(async () => {
      const state = await statusOf(endpoint, job);
      return state.status === "COMPLETED" && state;
    });
    expect(end.retries).toBe(1);
    expect(end.workerId).not.toBe(first.worker);
  });

  it("the log of a worker that writes without a pause stays within its bound", async () => {
    const program = join(scene.folder, "spinner.mjs");
    const name = `spinner-${Math.random().toString(36).slice(2)}`;
    writeFileSync(program, spinner);
    const template = { name, imageName: scene.folder, isServerless: true, dockerStartCmd: ["node", program] };
    const { body: made } = await call(server, "POST", "/v1/templates", template);
    const settings = { name, templateId: made.id, workersMin: 1, workersMax: 1 };
    const endpoint = (await call(server, "POST", "/v1/endpoints", settings)).body.id;
    await until(async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body.workers.ready === 1);
    await expectBoundedLogs();
  });

  it("the log of a stock worker, which spins without it, stays within its bound", async () => {
    const python = stockPython();
    if (python === undefined) throw new Error("There is no Python environment with the stock worker.");
    const { endpoint } = await scene.stock(server, python, { workersMin: 1, workersMax: 1 });
    await until(async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body.workers.ready === 1, 45_000);
    await expectBoundedLogs();
  });
});

it("a server on a directory that another server uses is refused with one sentence, and the other continues", async () => {
  await expect(startServer({ MILLRACE_DATA_DIR: server.dataDir })).rejects.toThrow(
    /ended with 1:\nAnother server uses the data directory [^\n]+\n$/,
  );
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

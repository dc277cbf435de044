import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { uniqueName } from "../e2e/resources.js";
import { call, root, startServer, type TestServer } from "../harness.js";

/** Writes a line into the volume each time that it begins a job. */
const source = `
import { appendFileSync } from "node:fs";
export default async function ({ n }) {
  appendFileSync("/runpod-volume/begun", n + " " + process.env.RUNPOD_POD_ID + "\\n");
  await new Promise((over) => setTimeout(over, 300));
  return { square: n * n };
}
`;
const jobCount = 200;
const image = "millrace-test/square:1";

let engine: TestDocker;
let server: TestServer;
let endpoint: string;
let begunFile: string;
beforeAll(async () => {
  engine = await startDocker();
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  writeFileSync(join(folder, "handler.mjs"), source);
  engine.makeImage(image, {
    programs: [process.execPath],
    files: { "/app/handler.mjs": join(folder, "handler.mjs"), "/app/worker": join(root, "packages/worker/dist") },
    changes: [`CMD ${JSON.stringify([process.execPath, "/app/worker/run-handler.js", "/app/handler.mjs"])}`],
  });
  rmSync(folder, { recursive: true });
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
  const make = async (path: string, body: object) =>
    (await call(server, "POST", `/v1/${path}`, body)).body.id as string;
  const networkVolumeId = await make("networkvolumes", { name: "lines", size: 1, dataCenterId: "here" });
  const templateId = await make("templates", { name: uniqueName(), imageName: image, isServerless: true });
  endpoint = await make("endpoints", { templateId, networkVolumeId, workersMax: 4, idleTimeout: 60 });
  begunFile = join(server.dataDir, "volumes", networkVolumeId, "begun");
}, 150_000);
afterAll(async () => {
  await server?.end();
  await engine?.end();
}, 150_000);

const jobs = new Map<string, number>();
/** Submits jobs; every acknowledged job must reach its end. */
async function submit(count: number): Promise<void> {
  for (let left = count; left > 0; left--) {
    const n = jobs.size;
    const { status, body } = await call(server, "POST", `/v2/${endpoint}/run`, { input: { n } });
    expect(status).toBe(200);
    jobs.set(body.id, n);
  }
}

/** Workers that the test has killed or paused without the server's knowledge. */
const casualties = new Set<string>();

/** A worker whose running job was never lost before: a job that is lost three times fails rightly. */
async function busyWorker(ageMs: number): Promise<string> {
  let found = "";
  const look = async () => {
    const { body } = await call(server, "GET", `/v2/${endpoint}/requests?status=IN_PROGRESS&limit=100`);
    const running = body.requests as { workerId: string; retries: number }[];
    const { workers } = (await call(server, "GET", `/v1/endpoints/${endpoint}?includeWorkers=true`)).body;
    const isOld = (id: string) =>
      workers.some(
        (each: Record<string, string>) => each.id === id && Date.now() - Date.parse(each.lastStartedAt!) >= ageMs,
      );
    const fit = running.find(({ workerId, retries }) => retries === 0 && !casualties.has(workerId) && isOld(workerId));
    found = fit?.workerId ?? "";
    return found;
  };
  await expect.poll(look, { timeout: 30_000, interval: 20 }).not.toBe("");
  return found;
}

async function strike(command: readonly string[], ageMs = 0): Promise<void> {
  const workerId = await busyWorker(ageMs);
  casualties.add(workerId);
  engine.docker(...command, `millrace-${workerId}`);
}

/** By this age a worker has pinged, so that its silence counts. */
const pingedMs = 6_000;

it("no job is lost, and none is run by two workers, while containers and their engine are killed under load", async () => {
  await submit(60);
  await strike(["kill"]);
  await strike(["rm", "-f"]);
  await submit(20);
  await strike(["kill", "--signal", "SEGV"]);
  await engine.stop("SIGKILL");
  await submit(40); // containers live on without their engine
  await engine.start();
  await submit(30);
  await strike(["rm", "-f"]);
  await submit(jobCount - jobs.size);
  await strike(["pause"], pingedMs); // it is never resumed: the server gives it up for its silence

  const health = async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body.jobs;
  const ended = async () => {
    const { completed, failed } = await health();
    return completed + failed;
  };
  await expect.poll(ended, { timeout: 90_000, interval: 250 }).toBe(jobCount);
  const begun = new Map<number, string[]>();
  for (const line of readFileSync(begunFile, "utf8").trimEnd().split("\n")) {
    const [n, workerId = ""] = line.split(" ");
    begun.set(Number(n), [...(begun.get(Number(n)) ?? []), workerId]);
  }
  let lost = 0;
  for (const [id, n] of jobs) {
    const { body } = await call(server, "GET", `/v2/${endpoint}/status/${id}`);
    expect(body).toMatchObject({ status: "COMPLETED", output: { square: n * n } });
    lost += body.retries;
    // Every worker that began the job and did not complete it was a casualty. A worker that was struck early may not
    // have begun it.
    const runs = begun.get(n) ?? [];
    expect(runs.at(-1)).toBe(body.workerId);
    expect(runs.length).toBeLessThanOrEqual(body.retries + 1);
    expect(runs.slice(0, -1).filter((workerId) => !casualties.has(workerId))).toEqual([]);
  }
  expect(casualties.size).toBe(5);
  expect(lost).toBe((await health()).retried);
  expect(lost).toBeGreaterThan(0);
}, 180_000);

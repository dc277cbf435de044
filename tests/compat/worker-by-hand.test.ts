import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import * as stock from "./stock.js";

let server: TestServer;

beforeAll(async () => {
  server = await startServer();
});

afterAll(async () => {
  await server?.end();
  stock.removeFolders();
});

describe("a worker's calls, made by hand", () => {
  it("are assigned by their URL, never by their X-Request-ID", async () => {
    const worker = await handWorker();
    const jobs = await Promise.all([1, 2, 3].map((n) => stock.submit(server, worker.endpoint, { n })));
    const held: string[] = [];
    while (held.length < 3) held.push(...(await worker.take(3 - held.length)));
    expect([...held].sort()).toEqual([...jobs].sort());
    const [first, second, third] = jobs as [string, string, string];

    await worker.post("OUTPUT", first, { output: "for the first" }, { "x-request-id": second });
    expect(await stock.statusOf(server, worker.endpoint, first)).toMatchObject({ output: "for the first" });
    expect(await stock.statusOf(server, worker.endpoint, second)).toMatchObject({ status: "IN_PROGRESS" });

    await worker.post("STREAM", second, { output: "a chunk" }, { "x-request-id": third });
    await worker.post("OUTPUT", second, { output: [] }, { "x-request-id": "not an id" });
    expect(await stock.statusOf(server, worker.endpoint, third)).toMatchObject({ status: "IN_PROGRESS" });
    const chunks = await stock.chunks(server, worker.endpoint, second);
    expect(chunks.map(({ output }) => output)).toEqual(["a chunk"]);

    await worker.post("OUTPUT", third, { output: "without one" });
    expect(await stock.statusOf(server, worker.endpoint, third)).toMatchObject({ output: "without one" });
    const ends = await Promise.all(jobs.map((job) => stock.statusOf(server, worker.endpoint, job)));
    expect(ends.map(({ status, retries }) => [status, retries])).toEqual(Array(3).fill(["COMPLETED", 0]));
  });

  it("are authenticated by the token in their URL, whatever the Authorization header says", async () => {
    const worker = await handWorker();
    const job = await stock.submit(server, worker.endpoint, {});
    expect(await worker.take(1)).toEqual([job]);
    await worker.post("OUTPUT", job, { output: 1 }, { authorization: "a-key-for-elsewhere" });
    expect(await stock.statusOf(server, worker.endpoint, job)).toMatchObject({ status: "COMPLETED", output: 1 });
    const bare = worker.address("OUTPUT", job).replace(/token=[^&]*/, "token=nobody");
    const refused = await fetch(bare, { method: "POST", body: "{}", headers: { authorization: "nobody" } });
    expect(refused.status).toBe(401);
    expect(server.log()).not.toContain("a-key-for-elsewhere");
  });
});

/** An endpoint whose worker only returns its environment, so that the test can make its calls. */
async function handWorker() {
  const dir = stock.newFolder();
  const given = join(dir, "given.json");
  const speak = `require("fs").writeFileSync(${JSON.stringify(given)}, JSON.stringify(process.env))`;
  const endpoint = await makeEndpoint(
    server,
    dir,
    { computeType: "CPU", workersMin: 1, workersMax: 1 },
    { dockerStartCmd: [process.execPath, "-e", `${speak}; setInterval(() => {}, 1000)`] },
  );
  const env = await until(() => {
    try {
      return JSON.parse(readFileSync(given, "utf8")) as Record<string, string>;
    } catch {
      return undefined;
    }
  });
  const id = env.RUNPOD_POD_ID as string;
  const authorization = env.RUNPOD_AI_API_KEY as string;
  const label = { "content-type": "application/x-www-form-urlencoded" };
  let holds = false;

  function address(kind: "OUTPUT" | "STREAM", job: string): string {
    const template = env[`RUNPOD_WEBHOOK_POST_${kind}`] as string;
    return `${template.replace("$RUNPOD_POD_ID", id).replace("$ID", job)}&isStream=false`;
  }
  return {
    endpoint,
    address,
    /** Takes up to `count` jobs, as a worker with room for them does; resolves with their ids. */
    async take(count: number): Promise<string[]> {
      const url = (env.RUNPOD_WEBHOOK_GET_JOB as string).replace("$ID", id).replace("/job-take/", "/job-take-batch/");
      const asked = await fetch(`${url}&batch_size=${count}&job_in_progress=${holds ? 1 : 0}`, {
        headers: { authorization },
      });
      if (asked.status === 204) return [];
      expect(asked.status).toBe(200);
      const jobs = (await asked.json()) as { id: string }[];
      holds = true;
      return jobs.map((job) => job.id);
    },
    async post(kind: "OUTPUT" | "STREAM", job: string, body: unknown, headers: Record<string, string> = {}) {
      const sent = { method: "POST", body: JSON.stringify(body), headers: { authorization, ...label, ...headers } };
      const reply = await fetch(address(kind, job), sent);
      expect(reply.status, await reply.text()).toBe(200);
    },
  };
}

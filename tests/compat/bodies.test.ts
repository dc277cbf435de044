import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, makeEndpoint, startServer, type TestServer } from "../harness.js";
import { newFolder, removeFolders, submit, waitingEndpoint } from "./stock.js";

let server: TestServer;
/** An endpoint without workers: its jobs wait. */
let idle: string;

beforeAll(async () => {
  // The purges below would exceed the limit of two in 10 s.
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  idle = await waitingEndpoint(server);
});

afterAll(async () => {
  await server?.end();
  removeFolders();
});

describe("bodies as clients send them", () => {
  const labelled = { "content-type": "application/json" };

  it.each(["", "{}", "null", "[1", "not json"])("ignores the body %j if the route reads no body", async (body) => {
    const job = await submit(server, idle, {});
    const post = (path: string) =>
      call(server, "POST", `/sdk/v2/${idle}${path}`, body === "" ? undefined : body, labelled);
    expect(await post(`/status/${job}`)).toMatchObject({ status: 200, body: { id: job, status: "IN_QUEUE" } });
    expect(await post(`/cancel/${job}`)).toMatchObject({ status: 200, body: { id: job, status: "CANCELLED" } });
    expect(await post(`/retry/${job}`)).toMatchObject({ status: 400 });
    expect(await post("/purge-queue")).toMatchObject({ status: 200, body: { removed: 0, status: "completed" } });
  });

  it("deletes an endpoint by an empty request with a JSON content type, even if its workersMax is not 0", async () => {
    const made = await makeEndpoint(
      server,
      newFolder(),
      { computeType: "CPU", workersMax: 2 },
      { dockerStartCmd: ["true"] },
    );
    expect((await call(server, "DELETE", `/v1/endpoints/${made}`, undefined, labelled)).status).toBe(400);
    const removed = await call(server, "DELETE", `/sdk/v1/endpoints/${made}`, undefined, labelled);
    expect(removed.status).toBe(204);
    expect(removed.body).toBeUndefined();
    expect((await call(server, "GET", `/sdk/v2/${made}/health`)).status).toBe(404);
  });

  it.each(["application/json", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream"])(
    "reads a submission with content type %s as JSON",
    async (label) => {
      const body = JSON.stringify({ input: { ключ: ["__proto__"] } });
      const reply = await call(server, "POST", `/sdk/v2/${idle}/run`, body, { "content-type": label });
      expect(reply).toMatchObject({ status: 200, body: { status: "IN_QUEUE" } });
      await call(server, "POST", `/sdk/v2/${idle}/cancel/${reply.body.id}`);
    },
  );
});

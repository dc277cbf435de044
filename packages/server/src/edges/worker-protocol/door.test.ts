import type { RequestListener } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Door, openDoor } from "../shared/connections/door.js";
import { type WorkersDoor, workersDoor } from "./door.js";

const gateway = "127.0.0.2"; // loopback has more than one address
const echo: RequestListener = (request, reply) => {
  let text = "";
  request.setEncoding("utf8").on("data", (part) => (text += part));
  request.on("end", () => reply.end(`${request.method} ${request.url} ${text}`));
};

let door: Door;
let side: WorkersDoor;
beforeEach(async () => {
  door = await openDoor("127.0.0.1", 0);
  door.take(echo);
  side = workersDoor("127.0.0.1", door);
});
afterEach(async () => {
  await side.close();
  await door.close();
});

const call = async (address: string, path: string, body?: string) => {
  const init = body === undefined ? {} : { method: "POST", body };
  const reply = await fetch(`http://${address}:${door.port}${path}`, { ...init, signal: AbortSignal.timeout(10_000) });
  return [reply.status, await reply.text()];
};

describe("The workers' listener", () => {
  it("serves workers' calls like the main listener, one after another on one connection", async () => {
    const address = await side.open(gateway);
    expect(address).toBe(gateway);
    for (let n = 0; n < 3; n++) {
      const take = `/v2/endpoint1/job-take/worker1?n=${n}`;
      expect(await call(address, take)).toEqual([200, `GET ${take} `]);
      const done = `/v2/endpoint1/job-done/worker1/job${n}`;
      expect(await call(address, done, '{"output":1}')).toEqual([200, `POST ${done} {"output":1}`]);
    }
  });

  it("serves nothing else", async () => {
    const address = await side.open(gateway);
    for (const path of ["/healthz", "/v2/endpoint1/run", "/v1/templates", "/v2/endpoint1/job-take"])
      expect(await call(address, path)).toEqual([404, expect.stringContaining("Only workers")]);
  });

  it("is not opened if the main listener already serves that address", async () => {
    expect(await workersDoor("0.0.0.0", door).open(gateway)).toBe(gateway);
    expect(await workersDoor("192.0.2.1", door).open(gateway)).toBe("192.0.2.1");
    await expect(call(gateway, "/v2/endpoint1/job-take/worker1")).rejects.toThrow();
  });

  it("reports in one sentence if it cannot be opened", async () => {
    await expect(side.open("192.0.2.1")).rejects.toThrow(/MILLRACE_WORKER_URL/);
  });
});

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { call, type TestServer, until } from "../harness.js";

/** A receiver that takes every webhook. */
export interface Receiver {
  readonly origin: string;
  end(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const server = createServer((request, reply) => request.resume().on("end", () => reply.end()));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    end: () => void server.close(),
  };
}

/** Runs a job whose webhook goes to a receiver; resolves with the id of its delivery once that has arrived. */
export async function delivered(server: TestServer, endpoint: string, { origin }: Receiver): Promise<string> {
  const { id } = (await call(server, "POST", `/v2/${endpoint}/run`, { input: {}, webhook: `${origin}/hook` })).body;
  return until(async () => {
    const { body } = await call(server, "GET", `/v1/webhooks/deliveries?jobId=${id}&state=delivered`);
    return body[0]?.id as string | undefined;
  });
}

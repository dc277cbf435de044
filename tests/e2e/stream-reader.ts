import { expect } from "vitest";
import { call, type TestServer } from "../harness.js";
import type { Ending } from "./handlers.js";
import { type HeldJob, makeHeld } from "./puppet.js";
import type { Body } from "./wire.js";

/** A job that a puppet holds, with every way to read its chunks. */
export interface Read extends HeldJob {
  /** Reads the contract's array. */
  chunks(query?: string): Promise<Body[]>;
  /** Reads the envelope that public clients use. */
  envelope(query?: string): Promise<{ status: string; stream: Body[] }>;
  events(lastId?: string, signal?: AbortSignal): Promise<Response>;
}

/** Makes a job that a puppet holds at this server. */
export async function makeRead(test: Ending, server: TestServer): Promise<Read> {
  const held = await makeHeld(test, server);
  const path = `${held.endpoint}/stream/${held.job}`;
  const read = async (prefix: string, query: string) => {
    const reply = await call(server, "GET", `${prefix}/${path}${query}`);
    expect(reply.status).toBe(200);
    return reply.body;
  };
  return {
    ...held,
    chunks: (query = "") => read("/v2", query),
    envelope: (query = "") => read("/sdk/v2", query),
    events: (lastId, signal) =>
      fetch(`${server.url}/v2/${path}`, {
        headers: {
          authorization: `Bearer ${server.key}`,
          accept: "text/event-stream",
          ...(lastId === undefined ? {} : { "last-event-id": lastId }),
        },
        ...(signal === undefined ? {} : { signal }),
      }),
  };
}

/** What chunks carry. */
export const outputs = (chunks: Body[]) => chunks.map((chunk) => chunk.output);

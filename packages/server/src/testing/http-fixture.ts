import type { Socket } from "node:net";
import { graphqlRoutes } from "../edges/graphql/routes.js";
import { buildHttp, type HttpParts } from "../edges/server.js";
import { openDoor } from "../edges/shared/connections/door.js";
import { Rates } from "../rates.js";
import type { Scene } from "./scene-fixture.js";

export interface Call {
  /** Strings and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** By default the admin's key; null sends none. */
  readonly key?: string | null;
  readonly signal?: AbortSignal;
}
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests check the body
  readonly json: any;
}

/** Serves every route over a scene's parts, on a real socket. */
export async function openHttp(scene: Scene, more: Partial<HttpParts> = {}) {
  const door = await openDoor("127.0.0.1", 0);
  const parts: HttpParts = {
    ...scene.parts,
    rates: new Rates(),
    requestsPerWorker: 100,
    metrics: async () => ({ contentType: "text/plain", text: "up 1\n" }),
    isReady: async () => true,
    logs: (workerId, handle, query) => scene.provider.logs(workerId, handle, query),
    readsLogs: scene.parts.here.readsLogs,
    graphql: (app, setToZero) => graphqlRoutes(app, { ...scene.parts, ...more, setToZero }),
    ...more,
  };
  const app = await buildHttp(parts, door.server, door.take);
  const sockets = new Set<Socket>(); // whichever of the door's listeners has accepted them
  door.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const url = `http://127.0.0.1:${door.port}`;

  async function call(method: string, path: string, { body, headers, key, signal }: Call = {}): Promise<Answer> {
    const sent = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const reply = await fetch(url + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key ?? scene.key}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: (sent ? body : JSON.stringify(body)) as string | Uint8Array<ArrayBuffer> }),
      ...(signal ? { signal } : {}),
    });
    const text = await reply.text();
    const isJson = /^application\/(problem\+)?json/.test(reply.headers.get("content-type") ?? "");
    return { status: reply.status, headers: reply.headers, text, json: isJson ? JSON.parse(text) : undefined };
  }

  return {
    app,
    url,
    port: door.port,
    /** The number of open connections. */
    connections: () => sockets.size,
    call,
    get: (path: string, more?: Call) => call("GET", path, more),
    post: (path: string, body?: unknown, more?: Call) => call("POST", path, { body, ...more }),
    async close(): Promise<void> {
      await door.close();
      await app.close();
    },
  };
}
export type Http = Awaited<ReturnType<typeof openHttp>>;

import { expect } from "vitest";
import { uniqueName } from "../e2e/resources.js";
import type { Body, Target } from "../e2e/wire.js";
import { call, until } from "../harness.js";

/** What people do with pods of a real server. */
export const podsOf = (server: Target) => ({
  async create(body: Record<string, unknown>): Promise<Body> {
    const reply = await call(server, "POST", "/v1/pods", { name: uniqueName(), computeType: "CPU", ...body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(201);
    return reply.body;
  },
  async show(id: string): Promise<Body> {
    const reply = await call(server, "GET", `/v1/pods/${id}`);
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    return reply.body;
  },
  async act(id: string, what: "start" | "stop" | "restart" | "reset"): Promise<Body> {
    const reply = await call(server, "POST", `/v1/pods/${id}/${what}`);
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    return reply.body;
  },
  async remove(id: string): Promise<void> {
    const { status } = await call(server, "DELETE", `/v1/pods/${id}`);
    expect([204, 404]).toContain(status);
  },
  /** Waits until the pod looks like this. */
  until(id: string, isSo: (pod: Body) => boolean): Promise<Body> {
    return until(async () => {
      const { status, body } = await call(server, "GET", `/v1/pods/${id}`);
      return status === 200 && isSo(body) ? body : undefined;
    });
  },
});

/** The lines of a file that a pod writes, once there are so many. */
export const linesOf = (read: () => string | undefined, count: number): Promise<string[]> =>
  until(() => {
    const lines = (read() ?? "").split("\n").filter(Boolean);
    return lines.length >= count ? lines : undefined;
  });

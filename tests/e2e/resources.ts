import { expect } from "vitest";
import { call } from "../harness.js";
import { type Ending, endWith, makeHandler } from "./handlers.js";
import type { Body, Target } from "./wire.js";

export const idPattern = /^[a-z0-9]{14}$/;
/** A well-formed id that belongs to no resource. */
export const unknownId = "unknown0000000";
export const uniqueName = () => `m-${Math.random().toString(36).slice(2)}`;

async function make(server: Target, path: string, fields: Record<string, unknown>): Promise<Body> {
  const reply = await call(server, "POST", `/v1${path}`, fields);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body;
}

/** Makes a template with the scripted handler. */
export function makeTemplate(test: Ending, server: Target, fields: Record<string, unknown> = {}): Promise<Body> {
  return make(server, "/templates", { name: uniqueName(), imageName: makeHandler(test), ...fields });
}

/** Makes an endpoint with only the fields that are sent. */
export async function makeBare(test: Ending, server: Target, fields: Record<string, unknown> = {}): Promise<Body> {
  const { id: templateId } = await makeTemplate(test, server);
  const endpoint = await make(server, "/endpoints", { templateId, ...fields });
  endWith(test, server, endpoint.id);
  return endpoint;
}

/** Makes a network volume. */
export function makeVolume(server: Target, fields: Record<string, unknown> = {}): Promise<Body> {
  return make(server, "/networkvolumes", { name: uniqueName(), size: 1, dataCenterId: "EU-RO-1", ...fields });
}

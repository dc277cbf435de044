import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { readAudit, showEntry } from "../../operations/access/read-audit.js";
import { timeIn } from "../../operations/fields.js";
import type { Parts } from "../../operations/needs.js";
import { cursorPattern, cursorTitle, readCursor, writeCursor } from "../shared/replies/cursor.js";
import { doc } from "./route-schema.js";

const text = (description: string) => Type.Optional(Type.String({ maxLength: 191, description }));
const time = (description: string) => Type.Optional(Type.String({ format: "date-time", description }));
const query = Type.Object({
  userId: text("Only changes made with this user's keys; it may be a deleted user's id."),
  keyId: text("Only changes made with this key."),
  action: Type.Optional(
    Type.Union(
      api.auditActions.map((action) => Type.Literal(action)),
      { description: "Only this action." },
    ),
  ),
  resource: text("Only changes of the resource with this id."),
  since: time("Only changes from this RFC 3339 time on."),
  until: time("Only changes before this RFC 3339 time."),
  limit: text(`How many entries, 1 to ${limits.auditPageMax}; default ${limits.auditPageDefault}.`),
  cursor: Type.Optional(
    Type.String({ pattern: cursorPattern, title: cursorTitle, description: "The nextCursor of the page before." }),
  ),
});

/** What its cursors are made for. */
const list = "audit";

type Query = Record<string, string | undefined>;

/** The audit log: who changed what, when, from where. */
export function auditRoutes(app: FastifyInstance, parts: Parts): void {
  const summary =
    "List changes, newest first: all of them for an admin, otherwise only changes made with your own keys";
  app.get("/audit", doc(summary, "audit", api.AuditPage, { querystring: query }), async (request) => {
    const { userId, keyId, action, resource, since, until, cursor, limit } = request.query as Query;
    const times = { sinceAt: timeOf("since", since), untilAt: timeOf("until", until) };
    const asked = {
      userId,
      keyId,
      action,
      resource,
      ...times,
      beforeNo: readCursor(parts, list, cursor),
      limit: countOf(limit),
    };
    const { entries, lookedTo } = await readAudit(parts, request.caller, asked);
    return {
      entries: entries.map((entry) => showEntry(request.caller, entry)),
      ...(lookedTo === undefined ? {} : { nextCursor: writeCursor(parts, list, lookedTo) }),
    };
  });
}

const timeOf = (name: string, given: string | undefined): number | undefined =>
  given === undefined ? undefined : timeIn(name, given);

function countOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const count = Number(given);
  if (/^\d{1,4}$/.test(given) && count >= 1 && count <= limits.auditPageMax) return count;
  throw invalid(`'limit' must be a whole number from 1 to ${limits.auditPageMax}.`);
}

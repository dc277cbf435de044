import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { realTime } from "../../../clock.js";
import { Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { followNews } from "../../../operations/access/follow-news.js";
import type { Parts } from "../../../operations/needs.js";
import { holdFor } from "../../shared/access.js";
import { goneOf } from "../../shared/logs/follow-log.js";
import { errors } from "../route-schema.js";

const schema = {
  summary: "What changes, as it changes",
  tags: ["endpoints"],
  response: {
    200: {
      description: "Server-sent events: `changed` names endpoints and what has changed of them; `missed` means all.",
      content: { "text/event-stream": { schema: Type.String() }, "application/json": { schema: api.NewsItems } },
    },
    ...errors,
  },
};

const followersOf = new Map<number, number>();

/** Counts one who follows the news; the returned function takes it out again. */
function admit(ownerNo: number): () => void {
  const own = followersOf.get(ownerNo) ?? 0;
  const all = [...followersOf.values()].reduce((sum, each) => sum + each, 0);
  if (own >= limits.newsFollowersPerOwner || all >= limits.newsFollowersMax)
    throw new Refusal("UNAVAILABLE", "Too many streams of events are open: close one.", { retryAfterSeconds: 5 });
  followersOf.set(ownerNo, own + 1);
  return () => {
    const left = (followersOf.get(ownerNo) ?? 1) - 1;
    if (left > 0) followersOf.set(ownerNo, left);
    else followersOf.delete(ownerNo);
  };
}

/** One stream of everything that changes for a caller. */
export function eventRoutes(app: FastifyInstance, parts: Parts): void {
  app.get("/events", { schema }, (request, reply) => {
    const { caller } = request;
    const gone = goneOf(reply);
    const leave = admit(caller.ownerNo);
    holdFor(parts, caller, reply, () => true);
    const { raw } = reply.hijack();
    raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-content-type-options": "nosniff",
      "x-request-id": request.id,
      "x-accel-buffering": "no",
    });
    raw.flushHeaders();
    let hasMissed = false;
    const send = (event: string, data: unknown) => raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    const ignore = followNews(parts, caller, (items) => {
      // a reader that falls behind looks at everything again, instead of having it kept for it
      if (raw.writableNeedDrain) hasMissed = true;
      else if (items === "much") send("missed", {});
      else send("changed", items);
    });
    raw.on("drain", () => {
      if (hasMissed) send("missed", {});
      hasMissed = false;
    });
    const stillHere = realTime.every(
      limits.sseKeepAliveMs,
      () => raw.writableNeedDrain || raw.write(": still here\n\n"),
    );
    // what happens on other servers is not heard of here
    const elsewhere = realTime.every(limits.newsElsewhereMs, () => {
      if (parts.registry.servers.length > 1 && !raw.writableNeedDrain) send("missed", {});
    });
    const end = () => raw.end();
    parts.draining.addEventListener("abort", end);
    const close = () => {
      ignore();
      leave();
      realTime.cancel(stillHere);
      realTime.cancel(elsewhere);
      parts.draining.removeEventListener("abort", end);
      raw.destroy();
    };
    if (gone.aborted) close();
    else gone.addEventListener("abort", close);
    return reply;
  });
}

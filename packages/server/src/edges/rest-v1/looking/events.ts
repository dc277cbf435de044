import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { followNews } from "../../../operations/access/follow-news.js";
import type { Parts } from "../../../operations/needs.js";
import { holdFor } from "../../shared/access.js";
import { goneOf } from "../../shared/logs/follow-log.js";
import { beginEvents, OpenStreams } from "../../shared/replies/open-streams.js";
import { errors } from "../route-schema.js";

const schema = {
  summary: "What changes, as it changes",
  tags: ["endpoints"],
  response: {
    200: {
      description:
        "Server-sent events: `changed` names endpoints and what has changed of them; `missed`: reload everything.",
      content: { "text/event-stream": { schema: Type.String() }, "application/json": { schema: api.NewsItems } },
    },
    ...errors,
  },
};

const followers = new OpenStreams({
  most: limits.newsFollowersMax,
  perOwner: limits.newsFollowersPerOwner,
  refusal: "Too many streams of events are open: close one.",
});

/** One stream of everything that changes for a caller. */
export function eventRoutes(app: FastifyInstance, parts: Parts): void {
  app.get("/events", { schema }, (request, reply) => {
    const { caller } = request;
    const gone = goneOf(reply);
    if (gone.aborted || parts.draining.aborted) return reply;
    const leave = followers.admit(caller.ownerNo);
    holdFor(parts, caller, reply, () => true);
    const raw = beginEvents(reply);
    let hasMissed = false;
    const send = (event: string, data: unknown) => raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    const ignore = followNews(parts, caller, (items) => {
      // a slow reader reloads everything: nothing is buffered for it
      if (raw.writableNeedDrain) hasMissed = true;
      else if (items === "much") send("missed", {});
      else send("changed", items);
    });
    raw.on("drain", () => {
      if (hasMissed) send("missed", {});
      hasMissed = false;
    });
    let stalledFor = 0;
    const stillHere = realTime.every(limits.sseKeepAliveMs, () => {
      stalledFor = raw.writableNeedDrain ? stalledFor + limits.sseKeepAliveMs : 0;
      // whoever reads nothing takes a place that others wait for
      if (stalledFor > limits.readerStallMs) close();
      else if (!raw.writableNeedDrain) raw.write(": still here\n\n");
    });
    let isClosed = false;
    const close = () => {
      if (isClosed) return;
      isClosed = true;
      ignore();
      leave();
      realTime.cancel(stillHere);
      parts.draining.removeEventListener("abort", close);
      raw.destroy();
    };
    parts.draining.addEventListener("abort", close);
    gone.addEventListener("abort", close);
    raw.once("close", close);
    if (gone.aborted || raw.destroyed) close();
    return reply;
  });
}

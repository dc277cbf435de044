import { randomUUID } from "node:crypto";
import type { RequestListener } from "node:http";

const workerCall = /^\/v2\/[a-z0-9]+\/(job-take|job-take-batch|job-stop|job-stream|job-done|job-done-batch|ping)\//;

/** Lets the calls of workers through and answers 404 to all else: for a door that others may reach, too. */
export function workersOnly(listener: RequestListener): RequestListener {
  return (request, reply) => {
    if (workerCall.test(request.url ?? "")) return listener(request, reply);
    request.resume();
    const error = "Only workers are served at this address.";
    reply.writeHead(404, { "content-type": "application/json; charset=utf-8", "x-content-type-options": "nosniff" });
    reply.end(JSON.stringify({ error, code: "NOT_FOUND", requestId: randomUUID() }));
  };
}

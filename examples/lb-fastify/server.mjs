import Fastify from "fastify";

const app = Fastify();
let isReady = false;

// 204 while it loads, 200 once it accepts requests
app.get("/ping", (_request, reply) => reply.code(isReady ? 200 : 204).send());

app.get("/greet/:name", (request) => ({ greeting: `Hello, ${request.params.name}!` }));

// server-sent events: each is sent to the client as it is written
app.get("/count", (request, reply) => {
  const to = Number(request.query.to ?? 3);
  reply.hijack();
  reply.raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  let n = 0;
  const timer = setInterval(() => {
    reply.raw.write(`data: ${++n}\n\n`);
    if (n >= to) reply.raw.end();
  }, 100);
  reply.raw.once("close", () => clearInterval(timer));
});

// finishes the requests in flight, then exits
process.once("SIGTERM", () => void app.close());

await app.listen({ port: Number(process.env.PORT), host: "0.0.0.0" });
isReady = true;

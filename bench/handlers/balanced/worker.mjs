// A worker of a load-balancing endpoint that answers the same at once.
import { createServer } from "node:http";

const answer = Buffer.from('{"greeting":"Hello, bench!","n":123456}');
const server = createServer({ keepAliveTimeout: 60_000 }, (_request, reply) => {
  reply.writeHead(200, { "content-type": "application/json; charset=utf-8", "content-length": answer.length });
  reply.end(answer);
});
server.listen(Number(process.env.PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit(0));

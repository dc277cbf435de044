// What the durable row is compared with: reads and parses the same JSON, and answers the same bytes. Nothing else.
import { createServer } from "node:http";

const answer = Buffer.from(process.argv[2]);
const server = createServer((request, reply) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const { input } = JSON.parse(Buffer.concat(parts).toString("utf8"));
    reply.writeHead(typeof input === "object" ? 200 : 400, {
      "content-type": "application/json; charset=utf-8",
      "content-length": answer.length,
    });
    reply.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));

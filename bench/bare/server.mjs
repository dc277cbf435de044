// The comparison for the HTTP rows: only reads and parses the same JSON, and answers the same bytes.
import { once } from "node:events";
import { createServer } from "node:http";
import { obey } from "../obey.mjs";

let answer;

const server = createServer((request, reply) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const input = parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString("utf8")).input : {};
    reply.writeHead(typeof input === "object" ? 200 : 400, {
      "content-type": "application/json; charset=utf-8",
      "content-length": answer.length,
    });
    reply.end(answer);
  });
});

obey({
  async start(text) {
    answer = Buffer.from(text);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `http://127.0.0.1:${server.address().port}`;
  },
});

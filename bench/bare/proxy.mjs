// The comparison for streams: passes each posted chunk on to the reader as a server-sent event.
import { once } from "node:events";
import { createServer } from "node:http";
import { obey } from "../obey.mjs";

const readers = new Set();
let index = 0;

const server = createServer((request, reply) => {
  if (request.url === "/stream") {
    reply.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    readers.add(reply);
    reply.once("close", () => readers.delete(reply));
    return;
  }
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const { output } = JSON.parse(Buffer.concat(parts).toString("utf8"));
    const data = JSON.stringify({ output, metrics: { stream_index: index } });
    for (const reader of readers) {
      if (request.url === "/end") reader.end();
      else reader.write(`event: chunk\nid: 1-${index}\ndata: ${data}\n\n`);
    }
    index += 1;
    reply.end("{}");
  });
});

obey({
  async start() {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `http://127.0.0.1:${server.address().port}`;
  },
});

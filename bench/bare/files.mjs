// The comparison for large bodies: reads each whole, stores it in its own file, and answers when it is on disk.
import { once } from "node:events";
import { open } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { obey } from "../obey.mjs";

let folder;
let files = 0;

const server = createServer((request, reply) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", async () => {
    const file = await open(join(folder, String(files++)), "w");
    await file.writev(parts);
    await file.sync();
    await file.close();
    reply.end("{}");
  });
});

obey({
  async start(where) {
    folder = where;
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `http://127.0.0.1:${server.address().port}`;
  },
});

// Reads a stream of server-sent events to its end, and reports the age of each chunk on arrival.
import { get } from "node:http";
import { obey } from "../obey.mjs";

obey({
  async read({ url, headers }) {
    const reply = await new Promise((resolve, reject) => {
      get(url, { headers: { ...headers, accept: "text/event-stream" } }, resolve).once("error", reject);
    });
    if (reply.statusCode !== 200) throw new Error(`${url} was answered ${reply.statusCode}`);
    const delays = [];
    let rest = "";
    for await (const part of reply.setEncoding("utf8")) {
      const now = process.hrtime.bigint();
      const events = (rest + part).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const at = event.startsWith("event: chunk") ? /"at":"(\d+)"/.exec(event)?.[1] : undefined;
        if (at !== undefined) delays.push(Number(now - BigInt(at)) / 1e6);
      }
    }
    if (delays.length === 0) throw new Error(`${url} had no chunks`);
    return delays;
  },
});

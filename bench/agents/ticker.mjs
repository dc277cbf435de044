// Posts chunks to the bare proxy, one at a time, as our SDK posts a handler's chunks.
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { obey } from "../obey.mjs";

const agent = new Agent({ keepAlive: true });

async function post(url, body) {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const reply = await new Promise((resolve, reject) => {
    request(url, { method: "POST", headers, agent }).once("response", resolve).once("error", reject).end(body);
  });
  await text(reply);
}

obey({
  async tick({ url, count, everyMs }) {
    for (let n = 0; n < count; n++) {
      await sleep(everyMs);
      await post(`${url}/chunk`, JSON.stringify({ output: { at: String(process.hrtime.bigint()) } }));
    }
    await post(`${url}/end`, "{}");
  },
});

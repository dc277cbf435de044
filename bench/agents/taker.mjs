// Takes jobs in batches and finishes them at once, like our SDK with handlers that take no time.
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { obey } from "../obey.mjs";

const agent = new Agent({ keepAlive: true });
const output = '"output":{"greeting":"bench"}';

async function call(method, url, body) {
  const headers =
    body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const reply = await new Promise((resolve, reject) => {
    request(url, { method, headers, agent }).once("response", resolve).once("error", reject).end(body);
  });
  const answer = await text(reply);
  if (reply.statusCode >= 300) throw new Error(`${url} was answered ${reply.statusCode} ${answer}`);
  return answer;
}

obey({
  /** Takes `count` jobs, one after another, and keeps them; resolves with their ids. */
  async take({ worker, count }) {
    const ids = [];
    while (ids.length < count) {
      const answer = await call("GET", `${worker.takeBatch}&batch_size=1&job_in_progress=1`);
      if (answer !== "") ids.push(...JSON.parse(answer).map(({ id }) => id));
    }
    return ids;
  },
  /** Takes and finishes `count` jobs, with one take open for each worker and up to four results on their way. */
  async drain({ workers, count, batch }) {
    let left = count;
    const beganAt = performance.now();
    const lane = async ({ takeBatch, doneBatch }) => {
      const posts = new Set();
      while (left > 0) {
        const size = Math.min(batch, left);
        left -= size;
        const url = `${takeBatch}&batch_size=${size}&job_in_progress=${posts.size > 0 ? 1 : 0}`;
        const answer = await call("GET", url);
        const jobs = answer === "" ? [] : JSON.parse(answer);
        left += size - jobs.length;
        if (jobs.length === 0) continue;
        const post = call("POST", doneBatch, `[${jobs.map(({ id }) => `{"id":"${id}",${output}}`).join(",")}]`);
        posts.add(post);
        post.finally(() => posts.delete(post));
        if (posts.size >= 4) await Promise.race(posts);
      }
      await Promise.all(posts);
    };
    await Promise.all(workers.map(lane));
    return count / ((performance.now() - beganAt) / 1_000);
  },
});

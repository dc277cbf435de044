// The reader of an answer and the worker that produces it, in one process: measures how long a chunk takes between
// them.
import { once } from "node:events";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { obey } from "../obey.mjs";

const agents = { reader: new Agent({ keepAlive: true }), worker: new Agent({ keepAlive: true }) };
const quietMs = 5;
const chunk = JSON.stringify({ output: 'data: {"choices":[{"index":0,"delta":{"content":"Mill"}}]}\n\n' });

function open(agent, method, url, { headers = {}, body = "" } = {}) {
  const sized = { ...headers, "content-length": Buffer.byteLength(body) };
  const sent = request(url, { method, agent, headers: sized });
  const reply = once(sent, "response").then(([answer]) => answer);
  sent.end(body);
  return reply;
}

async function call(method, url, body) {
  const reply = await open(agents.worker, method, url, { body });
  const answer = await text(reply);
  if (reply.statusCode >= 300) throw new Error(`${url} was answered ${reply.statusCode} ${answer}`);
  return answer;
}

/** When the first byte of an answer's body arrives. */
async function firstByteAt(reply) {
  const answer = await reply;
  if (answer.statusCode !== 200) throw new Error(`the reader was answered ${answer.statusCode}`);
  await once(answer, "data");
  const at = performance.now();
  answer.resume();
  return { at, over: once(answer, "end") };
}

obey({
  /** Through a service, where each answer is a job. Resolves with the milliseconds of each first token. */
  async ours({ url, headers, worker, count }) {
    const delays = [];
    while (delays.length < count) {
      const first = firstByteAt(open(agents.reader, "POST", url, { headers, body: '{"stream":true}' }));
      let jobs = "";
      while (jobs === "") jobs = await call("GET", `${worker.takeBatch}&batch_size=1&job_in_progress=0`);
      const [{ id }] = JSON.parse(jobs);
      await sleep(quietMs);
      const beganAt = performance.now();
      const heard = call("POST", worker.stream.replace("$ID", id), chunk);
      const { at, over } = await first;
      delays.push(at - beganAt);
      await heard;
      await call("POST", worker.done.replace("$ID", id), '{"output":[]}');
      await over;
    }
    return delays;
  },
  /** Through the bare proxy. */
  async bare({ url, count }) {
    const delays = [];
    while (delays.length < count) {
      const reply = open(agents.reader, "GET", `${url}/stream`);
      await reply;
      const first = firstByteAt(reply);
      await sleep(quietMs);
      const beganAt = performance.now();
      const heard = call("POST", `${url}/chunk`, chunk);
      delays.push((await first).at - beganAt);
      await heard;
      await call("POST", `${url}/end`, "{}");
      await (await first).over;
    }
    return delays;
  },
});

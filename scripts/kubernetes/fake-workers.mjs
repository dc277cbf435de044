// Workers that exist only as calls: what a worker in a simulated pod would do with its environment.
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";

const jobMs = 200;

/** Plays workers that answer each job with its input, until `end` is called. */
export function fakeWorkers() {
  const agent = new Agent({ connections: 4_096, headersTimeout: 120_000 });
  const closing = new AbortController();
  const playing = new Map();
  /** How often each job was run to its end. */
  const runs = new Map();

  async function play({ RUNPOD_POD_ID: id, RUNPOD_AI_API_KEY: key, ...env }, signal) {
    const headers = { authorization: key, "content-type": "application/json" };
    const call = async (method, url, body) => {
      const reply = await request(url, { method, headers, dispatcher: agent, signal, body });
      const text = await reply.body.text();
      return { status: reply.statusCode, text };
    };
    const take = `${env.RUNPOD_WEBHOOK_GET_JOB.replace("$ID", id)}&job_in_progress=0`;
    const done = env.RUNPOD_WEBHOOK_POST_OUTPUT.replace("$RUNPOD_POD_ID", id);
    while (!signal.aborted) {
      try {
        const { status, text } = await call("GET", take);
        if (status !== 200) {
          if (status !== 204) await sleep(1_000, undefined, { signal });
          continue;
        }
        const job = JSON.parse(text);
        await sleep(jobMs, undefined, { signal });
        await call("POST", `${done.replace("$ID", job.id)}&isStream=false`, JSON.stringify({ output: job.input }));
        runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
      } catch {
        if (!signal.aborted) await sleep(500);
      }
    }
  }

  return {
    runs,
    /** A pod runs from now on. */
    begin(uid, env) {
      if (playing.has(uid)) return;
      const one = new AbortController();
      playing.set(uid, one);
      void play(env, AbortSignal.any([one.signal, closing.signal])).catch(() => {});
    },
    /** A pod has ended. */
    stop(uid) {
      playing.get(uid)?.abort();
    },
    async end() {
      closing.abort();
      await agent.destroy();
    },
  };
}

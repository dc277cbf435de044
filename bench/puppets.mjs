// Workers whose calls the bench makes itself.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/set-up.mjs";
import { makeFolder, reach } from "./processes.mjs";

/** An endpoint with `count` live workers that do nothing by themselves. */
export async function makePuppets(scope, server, count) {
  const file = join(makeFolder(scope), "workers.jsonl");
  const template = { dockerStartCmd: ["node", "worker.mjs"], env: { BENCH_WORKERS: file } };
  const folder = join(root, "bench/handlers/idle");
  const endpoint = await server.makeEndpoint(folder, { workersMin: count, workersMax: count }, template);
  const started = () => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);
  let seen = 0;
  return {
    endpoint,
    /** The addresses of the workers that started last. They change after a restart of the server. */
    async addresses() {
      await reach(`${count} workers`, () => started().length >= seen + count);
      return started()
        .slice(-count)
        .map((line) => addressesOf(JSON.parse(line)));
    },
    /** Ignores the present workers from now on. */
    forget() {
      seen = started().length;
    },
  };
}

/** The addresses where a worker with this environment takes its jobs and posts their results. */
function addressesOf(env) {
  const id = env.RUNPOD_POD_ID;
  const done = env.RUNPOD_WEBHOOK_POST_OUTPUT;
  return {
    takeBatch: env.RUNPOD_WEBHOOK_GET_JOB.replace("$ID", id).replace("/job-take/", "/job-take-batch/"),
    doneBatch: done.replace("/job-done/$RUNPOD_POD_ID/$ID", `/job-done-batch/${id}`),
    stream: `${env.RUNPOD_WEBHOOK_POST_STREAM.replace("$RUNPOD_POD_ID", id)}&isStream=false`,
    done: `${done.replace("$RUNPOD_POD_ID", id)}&isStream=false`,
  };
}

// Child processes of the bench.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const file = (name) => join(import.meta.dirname, name);

/** Runs the load generator over a plan, and resolves with what it counted. */
export async function load(plan) {
  const child = spawn(process.execPath, [file("load.mjs"), JSON.stringify(plan)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const counted = JSON.parse(await text(child.stdout));
  if (counted.bad > 0)
    throw new Error(`${counted.bad} of ${counted.bad + counted.count} requests were not answered 200.`);
  return counted;
}

/** Starts the bare server that answers `answer`; resolves once it listens. */
export async function startBare(answer) {
  const child = spawn(process.execPath, [file("bare-server.mjs"), answer], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  return {
    url: `http://127.0.0.1:${line.trim()}`,
    async end() {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

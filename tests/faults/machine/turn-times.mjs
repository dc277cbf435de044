// Loaded with `--import` before a test's server: writes down the turns of its event loop that computed for long, in
// processor time, which other programs on the machine do not stretch.
import { rename, writeFile } from "node:fs/promises";
import { isMainThread } from "node:worker_threads";

const file = process.env.MILLRACE_TEST_TURNS;
if (isMainThread && file && process.argv[1]?.endsWith("dist/main.js")) {
  const turns = [];
  let last = process.threadCpuUsage();
  setInterval(() => {
    const now = process.threadCpuUsage();
    const ms = (now.user + now.system - last.user - last.system) / 1_000;
    last = now;
    if (ms > 25) turns.push({ at: Date.now(), ms });
  }, 1).unref();
  // not by this thread, which a slow disk would hold up
  const write = () =>
    writeFile(`${file}.new`, JSON.stringify(turns.slice(-2_000)))
      .then(() => rename(`${file}.new`, file))
      .catch(() => {}); // the folder goes with its test
  const again = () => setTimeout(() => write().then(again), 200).unref();
  again();
}

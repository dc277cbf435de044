// A worker that only stays alive: the bench reads its environment, and makes its calls.
import { appendFileSync } from "node:fs";

process.on("SIGTERM", () => process.exit(0));
appendFileSync(process.env.BENCH_WORKERS, `${JSON.stringify(process.env)}\n`);
setInterval(() => {}, 60_000);

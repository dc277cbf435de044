// A worker that only lives: the bench reads what it was given, and says its words itself.
import { appendFileSync } from "node:fs";

process.on("SIGTERM", () => process.exit(0));
appendFileSync(process.env.BENCH_WORKERS, `${JSON.stringify(process.env)}\n`);
setInterval(() => {}, 60_000);

import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { hiddenTexts } from "../../domain/access/secret.js";
import type { Exit, WorkerHandle } from "../../domain/workers/worker.js";
import { type DirectorySpec, type LogQuery, type Provider, StartUnsure } from "../../provider.js";
import { readLogFiles } from "../log-files/reading.js";
import { KeeperClient, KeeperGone, type KeeperOptions } from "./keeper-client.js";
import { killGroup, type ProcessId } from "./process-table.js";

/** The command that runs the handler in a directory; undefined if there is none. */
export function handlerCommand(directory: string): string[] | undefined {
  for (const name of ["handler.ts", "handler.js", "handler.mjs"]) {
    if (existsSync(join(directory, name))) return [process.execPath, runHandler(), join(directory, name)];
  }
  if (!existsSync(join(directory, "handler.py"))) return undefined;
  const own = join(directory, ".venv/bin/python");
  return [existsSync(own) ? own : "python3", "-u", "handler.py"];
}

const runHandler = () => createRequire(import.meta.url).resolve("@millrace/worker/run-handler");

/** What the keeper says of a worker. */
export type Kept =
  | { readonly state: "running"; readonly handle: ProcessId }
  | { readonly state: "ended"; readonly exit: Exit }
  | { readonly state: "unknown" };

const handleOf = (ref: ProcessId): WorkerHandle => ({ provider: "process", ref: { ...ref } });

/** Runs workers as local processes under the keeper, each in a process group of its own. */
export function processProvider(options: KeeperOptions): Provider<DirectorySpec> {
  mkdirSync(options.logsDir, { recursive: true, mode: 0o700 });
  const listeners = new Set<(workerId: string) => void>();
  const tell = (workerId: string) => listeners.forEach((listener) => void listener(workerId));
  const known = new Set<string>();
  const keeper = new KeeperClient(options, {
    end: tell,
    // without their keeper, its workers are lost: each is looked up, not found, and cleaned up
    lost: () => [...known].forEach(tell),
  });

  /** A worker's lines as they come; once its end is reported, all of them are in the file. */
  async function* follow(workerId: string, query: LogQuery) {
    let isOver = false;
    const look = () =>
      keeper.call<Kept>("look", workerId).then(
        ({ state }) => void (isOver = state !== "running"),
        () => void (isOver = true),
      );
    const onTold = (told: string) => void (told === workerId && void look());
    listeners.add(onTold);
    try {
      await look();
      yield* readLogFiles(options.logsDir, workerId, query, () => isOver);
    } finally {
      listeners.delete(onTold);
    }
  }
  return {
    handleOf: () => undefined, // its pid is not known yet
    async start({ workerId, from: { directory }, entrypoint, command, env, hidden = [] }) {
      const given = [...entrypoint, ...command];
      const argv = given.length > 0 ? given : handlerCommand(directory);
      if (!argv) {
        throw new Error(
          "there is no handler.ts, handler.js, handler.mjs or handler.py in the directory, and no start command",
        );
      }
      if (!existsSync(directory)) throw new Error("the handler's directory is gone");
      const launch = { argv, cwd: directory, env, hidden: hiddenTexts(env, hidden) };
      const started = await keeper.call<ProcessId>("start", workerId, launch).catch((error) => {
        throw error instanceof KeeperGone ? new StartUnsure(error.message) : error;
      });
      known.add(workerId);
      return handleOf(started);
    },
    async look(workerId) {
      const seen = await keeper.call<Kept>("look", workerId);
      if (seen.state === "unknown") return { ...seen, why: "its keeper was gone", isAbsent: false };
      if (seen.state === "ended") return seen;
      known.add(workerId);
      return { state: "running", handle: handleOf(seen.handle) };
    },
    pause: async (workerId) => void (await keeper.call("pause", workerId)),
    resume: async (workerId) => void (await keeper.call("resume", workerId)),
    stop: async (workerId) => void (await keeper.call("stop", workerId)),
    async kill(workerId, handle) {
      await keeper.call("kill", workerId);
      if (handle?.provider === "process") killGroup(workerId, handle.ref as unknown as ProcessId);
    },
    logTail: async (workerId) => (await keeper.call<{ text: string }>("tail", workerId)).text,
    logs: (workerId, _handle, query) =>
      query.follow ? follow(workerId, query) : readLogFiles(options.logsDir, workerId, query, () => true),
    hide: async (workerId, secret) => void (await keeper.call("hide", workerId, { secret })),
    async forget(workerId) {
      known.delete(workerId);
      // if the keeper is gone, there is nothing to forget
      await keeper.call("forget", workerId).catch(() => {});
    },
    onEnd(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async leave(awayMs) {
      await keeper.call("leave", "", { awayMs });
      await keeper.close();
    },
  };
}

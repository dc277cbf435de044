import { readdirSync, readFileSync } from "node:fs";

/** A worker's leading process, and the environment it was started with. */
export interface Leader {
  readonly pid: number;
  readonly endpoint: string;
  readonly worker: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The leaders of all live workers of these endpoints. Their children have the environment too, but lead no group. */
export function leadersOf(endpoints: readonly string[]): Leader[] {
  const leaders: Leader[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || groupOf(pid) !== pid) continue;
    const env = environmentOf(pid);
    const endpoint = env.RUNPOD_ENDPOINT_ID ?? "";
    if (endpoints.includes(endpoint)) leaders.push({ pid, endpoint, worker: env.RUNPOD_POD_ID ?? "", env });
  }
  return leaders;
}

/** The process that started this one. */
export const parentOf = (pid: number): number | undefined => statOf(pid)?.parent;

/** The command line of a process. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** Whether a process runs. A zombie does not count. */
export const isAlive = (pid: number): boolean => groupOf(pid) !== undefined;

/** Sends a signal; false if the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Runs `act` while a process is stopped, in all of its threads. */
export async function halted(pid: number, act: () => Promise<unknown>): Promise<void> {
  process.kill(pid, "SIGSTOP");
  try {
    while (!threadStatesOf(pid).every((state) => state === "T")) await new Promise((later) => setImmediate(later));
    await act();
  } finally {
    signal(pid, "SIGCONT");
  }
}

const stateIn = (stat: string): string => stat.slice(stat.lastIndexOf(")") + 2).split(" ")[0] ?? "";
const threadStatesOf = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/task`).map((thread) => stateIn(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8")));

const groupOf = (pid: number): number | undefined => statOf(pid)?.group;

function statOf(pid: number): { parent: number; group: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, parent, group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : { parent: Number(parent), group: Number(group) };
  } catch {
    return undefined;
  }
}

function environmentOf(pid: number): Record<string, string> {
  try {
    const lines = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
  } catch {
    return {};
  }
}

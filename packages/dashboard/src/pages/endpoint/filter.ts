import type { JobStatus, StatusBody } from "@millrace/api";
import { shortName } from "@millrace/api/words";
import { statusWords } from "../../parts/status.js";

/** What a person wants to see of a list of jobs. */
export interface Filter {
  readonly status: JobStatus | undefined;
  /** What was typed as a state and is none. */
  readonly unknownStatus: string | undefined;
  readonly worker: string;
  readonly error: string;
  /** Must be in the job's id, its worker or its error. */
  readonly texts: readonly string[];
}

/** Reads `status:failed worker:amber-fox error:"KeyError" text`. */
export function filterOf(typed: string): Filter {
  const named = { status: "", worker: "", error: "" };
  const texts: string[] = [];
  for (const [, name, quoted, plain] of typed.matchAll(/(?:(status|worker|error):)?(?:"([^"]*)"?|(\S+))/g)) {
    const value = (quoted ?? plain ?? "").toLowerCase();
    if (name === undefined) texts.push(value);
    else named[name as keyof typeof named] = value;
  }
  const status = statusOf(named.status);
  return { ...named, status, unknownStatus: status || named.status === "" ? undefined : named.status, texts };
}

function statusOf(typed: string): JobStatus | undefined {
  if (typed === "") return undefined;
  const plain = (text: string) => text.toLowerCase().replaceAll(/[-_ ]/g, "");
  return (Object.keys(statusWords) as JobStatus[]).find(
    (status) => plain(status) === plain(typed) || plain(statusWords[status]).startsWith(plain(typed)),
  );
}

/** Whether it asks for more than a state. */
export const isSearch = ({ worker, error, texts }: Filter): boolean =>
  worker !== "" || error !== "" || texts.length > 0;

/** Whether a job that has the filter's status is wanted by the rest of it, too. */
export function isShown({ id, workerId = "", error = "" }: StatusBody, filter: Filter): boolean {
  const worker = workerId === "" ? "" : `${workerId} ${shortName(workerId)}`.toLowerCase();
  const said = error.toLowerCase();
  const all = `${id} ${worker} ${said}`.toLowerCase();
  return (
    worker.includes(filter.worker) && said.includes(filter.error) && filter.texts.every((text) => all.includes(text))
  );
}

/** The filter with another state; the rest of it stays. */
export function withStatus(typed: string, status: JobStatus | undefined): string {
  const rest = typed.replaceAll(/(^|\s)status:("[^"]*"?|\S*)/g, "").trim();
  const term = status === undefined ? "" : `status:${statusWords[status].replace(" ", "-")}`;
  return [term, rest].filter(Boolean).join(" ");
}

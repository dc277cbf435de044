import type { ApiKey } from "@millrace/api";
import { ago } from "@millrace/api/words";
import type { Column } from "../output/table.js";
import type { Resource } from "./resources.js";

const of = (title: string, cell: (key: ApiKey) => string | undefined): Column<Resource> => ({
  title,
  of: (resource) => cell(resource as unknown as ApiKey),
});

/** What keys are called, when they end and what they may do. */
export const keyColumns: readonly Column<Resource>[] = [
  of("name", ({ name }) => name),
  of("id", ({ id }) => id),
  of("begins with", ({ prefix }) => prefix),
  of("used", ({ lastUsedAt }) => ago(lastUsedAt)),
  of("made", ({ createdAt }) => ago(createdAt)),
  of("ends", (key) => endWords(key)),
  of("may", ({ scope }) => scopeWords(scope)),
];

/** When a key ends and, after a rotation, until when its old text also works. */
export function endWords({ expiresAt, oldUntil }: Pick<ApiKey, "expiresAt" | "oldUntil">, now = Date.now()): string {
  const isOver = (time: string) => Date.parse(time) <= now;
  if (expiresAt !== undefined && isOver(expiresAt)) return "expired";
  const end = expiresAt === undefined ? "never" : momentWords(expiresAt, now);
  return oldUntil === undefined || isOver(oldUntil) ? end : `${end}; old text until ${momentWords(oldUntil, now)}`;
}

/** A local time; today's without its date. */
function momentWords(time: string, now: number): string {
  const [day, today] = [new Date(time), new Date(now)].map((at) => at.toLocaleDateString("sv")) as [string, string];
  const minutes = new Date(time).toTimeString().slice(0, 5);
  return day === today ? minutes : `${day} ${minutes}`;
}

/** "all", "read", or what may be done with which endpoints: `run 4f1c…`. */
const scopeWords = (scope: ApiKey["scope"]): string =>
  typeof scope === "string" ? scope : scope.endpoints.map(({ id, access }) => `${access} ${id}`).join(", ");

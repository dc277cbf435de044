import { expect } from "vitest";
import type { ClientTable } from "./client-table.js";

/** What a script found out about a call: what it gave, or its error. */
export interface Finding {
  // biome-ignore lint/suspicious/noExplicitAny: tests check its shape
  readonly gave?: any;
  readonly error?: string;
}

/** Expects each call of a table to be made, and to end as the table says. */
export function expectOutcomes({ calls }: ClientTable, found: Readonly<Record<string, Finding>>): void {
  const seen = Object.fromEntries(
    Object.keys(calls).map((call) => [call, found[call] ? (found[call].error ?? "works") : "was not called"]),
  );
  const expected = Object.entries(calls).map(([call, outcome]) => [
    call,
    outcome === "works" ? "works" : expect.stringMatching(/hosted service/),
  ]);
  expect(seen).toEqual(Object.fromEntries(expected));
}

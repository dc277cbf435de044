import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The turns of a server's event loop that computed for long. */
export interface TurnTimes {
  /** Settings for the server. */
  readonly env: Record<string, string>;
  /** The longest turn since then, in milliseconds of processor time. */
  longestSince(at: number): Promise<number>;
  end(): void;
}

/** Watches the turns of a server that is started with `env`. */
export function watchTurns(): TurnTimes {
  const directory = mkdtempSync(join(tmpdir(), "millrace-turns-"));
  const file = join(directory, "turns.json");
  const preload = join(import.meta.dirname, "turn-times.mjs");
  return {
    env: { NODE_OPTIONS: `--import=${preload}`, MILLRACE_TEST_TURNS: file },
    async longestSince(at) {
      await sleep(500); // the file is written a few times a second
      const turns = JSON.parse(readFileSync(file, "utf8")) as { at: number; ms: number }[];
      return Math.max(0, ...turns.filter((turn) => turn.at >= at).map(({ ms }) => ms));
    },
    end: () => rmSync(directory, { recursive: true, force: true }),
  };
}

import { describe, expect, it } from "vitest";
import { LogPosition } from "./log-position.js";

const time = (second: number, nanosecond = 0) =>
  `2026-01-01T00:00:${String(second).padStart(2, "0")}.${String(nanosecond).padStart(9, "0")}`;

describe("How far a log has been read", () => {
  /** Reads a log in parts: before each, its lines so far come again from the whole second on that is asked for. */
  const read = (...parts: [time: string, text: string][][]): string[] => {
    const position = new LogPosition();
    const taken: string[] = [];
    const written: [string, string][] = [];
    for (const part of parts) {
      const since = position.resume()?.replace("Z", "") ?? "";
      const again = written.filter(([at]) => at >= since);
      for (const [at, text] of [...again, ...part]) if (position.take(at)) taken.push(text);
      written.push(...part);
    }
    return taken;
  };

  it.each<[string, [string, string][][]]>([
    ["lines of one second", [[[time(1, 1), "a"]], [[time(1, 2), "b"]], [[time(1, 3), "c"]]]],
    [
      "lines of one time, which a runtime has read at once",
      [
        [
          [time(1), "a"],
          [time(1), "b"],
        ],
        [[time(1), "c"]],
        [],
        [[time(1), "d"]],
      ],
    ],
    [
      "the lines of two pipes, out of order",
      [
        [
          [time(1, 7), "a"],
          [time(1, 5), "b"],
        ],
        [
          [time(1, 6), "c"],
          [time(1, 9), "d"],
          [time(1, 8), "e"],
        ],
        [[time(2), "f"]],
      ],
    ],
    [
      "lines after the clock was set back",
      [
        [
          [time(7), "a"],
          [time(8), "b"],
          [time(3), "c"],
        ],
        [[time(4), "d"]],
        [
          [time(8), "e"],
          [time(9), "f"],
        ],
        [[time(9, 1), "g"]],
      ],
    ],
  ])("takes each line once: %s", (_, parts) => {
    expect(read(...parts)).toEqual(parts.flat().map(([, text]) => text));
  });

  it("begins after the last line that is kept already", () => {
    const position = new LogPosition({ lastUs: Date.parse(`${time(2)}Z`) * 1_000 });
    expect(position.resume()).toBe("2026-01-01T00:00:02Z");
    expect([time(1, 5), time(2, 999), time(2, 1_000)].map((at) => position.take(at))).toEqual([false, true, true]);
  });
});

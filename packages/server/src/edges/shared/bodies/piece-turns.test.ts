import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { mayParse, spendPieces } from "./piece-turns.js";

it("Bodies that wait with a large piece each share a turn's time, not only its pieces", async () => {
  const count = 50;
  const parsedIn: number[] = [];
  let now = 0;
  spendPieces(limits.bodyPiecesPerTurn);
  for (let n = 0; n < count; n++) {
    const parse = () => {
      for (const until = performance.now() + limits.bodyTurnMs / 4; performance.now() < until; );
      spendPieces(1);
      parsedIn.push(now);
    };
    expect(mayParse(parse)).toBe(false);
  }
  for (; parsedIn.length < count; now++) await turn();
  const perTurn = Array.from({ length: now }, (_, at) => parsedIn.filter((each) => each === at).length);
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(4);
});

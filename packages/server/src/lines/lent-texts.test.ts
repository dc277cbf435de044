import { describe, expect, it } from "vitest";
import { PlainSignal } from "../clock.js";
import type { JobReport, JobStatus } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";
import type { JobReader } from "../store/index.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { lending } from "./lent-texts.js";

const mib = 1_024 * 1_024;
const jobOf = (id: string, unreadBytes: number, status: JobStatus = "COMPLETED") =>
  ({ endpointNo: 1, id, starts: 1, status, finishedAt: 1, unreadBytes }) as JobReport;

/** Texts in a database whose reads end when the test decides. */
function opened() {
  const readings: { id: string; bytesMax: number; end: (bytes?: number) => void }[] = [];
  const findTexts: JobReader["findTexts"] = ({ jobId: id, bytesMax }) =>
    new Promise((resolve) => {
      const end = (bytes = bytesMax) => {
        const output = [new Uint8Array(1)];
        const texts = bytes > bytesMax ? undefined : { output, error: undefined, progress: undefined };
        resolve(bytes === 0 ? undefined : { job: jobOf(id, bytes), texts });
      };
      readings.push({ id, bytesMax, end });
    });
  const clock = new MovableClock();
  const { shares, texts } = lending(clock, { findTexts });
  return { clock, shares, texts, readings };
}
const here = new PlainSignal();
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("Large texts", () => {
  it("are read once for all readers of a result, and held until the last reader has them", async () => {
    const { shares, texts, readings } = opened();
    const asked = Array.from({ length: 250 }, () => texts.lend(1, jobOf("a", 20 * mib), here));
    await settled();
    expect(readings).toHaveLength(1);
    readings[0]?.end();
    const lent = await Promise.all(asked);
    expect(shares.heldBytes).toBe(20 * mib);
    for (const one of lent.slice(1)) if (typeof one === "object") one.release();
    expect(shares.heldBytes).toBe(20 * mib);
    const [first] = lent;
    if (typeof first === "object") {
      first.release();
      first.release();
    }
    expect(shares.heldBytes).toBe(0);
  });

  it("are read separately for each reader while the job runs, because they change", async () => {
    const { texts, readings } = opened();
    void texts.lend(1, jobOf("a", 20 * mib, "IN_PROGRESS"), here);
    void texts.lend(1, jobOf("a", 20 * mib, "IN_PROGRESS"), here);
    await settled();
    expect(readings).toHaveLength(2);
  });

  it("take a larger share if they have grown since the job was found", async () => {
    const { shares, texts, readings } = opened();
    const asked = texts.lend(1, jobOf("a", mib, "IN_PROGRESS"), here);
    await settled();
    readings[0]?.end(5 * mib);
    await settled();
    expect([readings[1]?.bytesMax, shares.heldBytes]).toEqual([5 * mib, 5 * mib]);
    readings[1]?.end();
    expect(await asked).toMatchObject({ job: { unreadBytes: 5 * mib } });
  });

  it("are refused if no room became free in time, and memory is never held beyond the bound", async () => {
    const { clock, shares, texts, readings } = opened();
    const asked = Array.from({ length: 20 }, (_, n) => texts.lend(n, jobOf(`job-${n}`, 20 * mib), here));
    await settled();
    expect(readings).toHaveLength(Math.floor(limits.lentBytesMax / (20 * mib)));
    expect(shares.heldBytes).toBeLessThanOrEqual(limits.lentBytesMax);
    await clock.advance(limits.lentWaitMs, settled);
    expect(await asked.at(-1)).toBe("full");
  });

  it("are forgotten when the last reader disconnects while they are read", async () => {
    const { shares, texts, readings } = opened();
    const gone = new PlainSignal();
    const asked = texts.lend(1, jobOf("a", mib), gone);
    await settled();
    gone.abort();
    expect(shares.heldBytes).toBe(mib); // a read that is under way is in memory
    readings[0]?.end();
    await asked;
    expect(shares.heldBytes).toBe(0);
    void texts.lend(1, jobOf("a", mib), here);
    await settled();
    expect(readings).toHaveLength(2);
  });

  it("give their share back if the job has expired", async () => {
    const { shares, texts, readings } = opened();
    const asked = texts.lend(1, jobOf("a", mib), here);
    await settled();
    readings[0]?.end(0);
    expect([await asked, shares.heldBytes]).toEqual(["vanished", 0]);
  });
});

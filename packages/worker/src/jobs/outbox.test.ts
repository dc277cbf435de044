import { expect, it } from "vitest";
import type { Reply } from "../connection.js";
import { readSettings } from "../settings.js";
import { Outbox } from "./outbox.js";

const settings = readSettings({
  RUNPOD_WEBHOOK_GET_JOB: "http://server/v2/e/job-take/$ID?gpu=none",
  RUNPOD_WEBHOOK_POST_OUTPUT: "http://server/v2/e/job-done/$RUNPOD_POD_ID/$ID?gpu=none",
});
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const result = (jobId: string, body: string) => ({ jobId, body, isStream: false });

function openOutbox(answers: number[], heldMaxBytes: number) {
  const urls: string[] = [];
  const call = async (_: string, url: string): Promise<Reply> => {
    urls.push(url);
    return { status: answers.shift() ?? 200, text: "", retryAfterMs: 0 };
  };
  const outbox = new Outbox({ settings, connection: { call }, log: quiet, onRefused() {}, heldMaxBytes });
  const add = (jobId: string, body: string) => {
    let onDelayed = () => {};
    let onSettled = () => {};
    const delayed = new Promise<void>((resolve) => (onDelayed = resolve));
    const settled = new Promise<void>((resolve) => (onSettled = resolve));
    outbox.add(result(jobId, body), { onDelayed, onSettled });
    return { delayed, settled };
  };
  return { outbox, add, urls };
}

it("is full while more than its share of memory waits for the server, and drops nothing", async () => {
  const { outbox, add, urls } = openOutbox([503, 503], 10);
  const first = add("a", '{"output":"0123456789"}');
  await first.delayed;
  expect(outbox.isFull).toBe(true);
  await first.settled;
  expect([outbox.isFull, urls.length]).toEqual([false, 3]);
});

it("sends large results separately, and small ones together", async () => {
  const { add, urls } = openOutbox([], 100_000_000);
  const large = `{"output":"${"x".repeat(3_000_000)}"}`;
  const all = [add("a", large), add("b", large), add("c", "{}"), add("d", "{}")];
  await Promise.all(all.map((each) => each.settled));
  expect(urls.map((url) => url.match(/job-done(-batch)?/)?.[0])).toEqual(["job-done", "job-done-batch"]);
});

it("sends the results of a refused batch separately, and drops only those that are refused again", async () => {
  const { add, urls } = openOutbox([400, 400, 200], 1_000);
  await Promise.all([add("a", "{}").settled, add("b", "{}").settled]);
  expect(urls.length).toBe(3);
});

it("gives up on everything once it is abandoned", async () => {
  const { outbox, add } = openOutbox([503], 1_000);
  const entry = add("a", "{}");
  await entry.delayed;
  outbox.abandon();
  await entry.settled;
  expect(outbox.isFull).toBe(false);
});

import { createHmac, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeQueue } from "../e2e/handlers.js";
import { submit } from "../e2e/wire.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import { endOfReceiver, languageNames, type RunningReceiver, startReceiver } from "./receivers.js";

let server: TestServer;
let secret: string;
beforeAll(async () => {
  server = await startServer();
  secret = (await call(server, "GET", "/v1/webhooks/secret")).body.secret;
});
afterAll(() => server?.end());

const body = '{"id":"by-hand","status":"COMPLETED","output":"é漢"}';
const minutesAgo = (minutes: number): string => String(Math.floor(Date.now() / 1_000) - 60 * minutes);
const other = `whsec_${randomBytes(32).toString("base64")}`;

/** A request's headers, signed now with the owner's secret unless told otherwise. */
function signed({ id = "msg_1", timestamp = minutesAgo(0), text = body, by = [secret] } = {}): Record<string, string> {
  const signature = (key: string) =>
    createHmac("sha256", Buffer.from(key.slice("whsec_".length), "base64"))
      .update(`${id}.${timestamp}.${text}`)
      .digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": by.map((key) => `v1,${signature(key)}`).join(" "),
  };
}

describe.each(languageNames)("the receiver in docs/guide/webhooks.md for %s", (language) => {
  const undos: (() => Promise<void> | void)[] = [];
  const ending = { onTestFinished: (undo: () => Promise<void> | void) => void undos.unshift(undo) };
  let receiver: RunningReceiver;
  beforeAll(async () => {
    receiver = await startReceiver(ending, language, secret);
  }, 120_000);
  afterAll(async () => {
    for (const undo of undos) await undo();
  });
  const post = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(receiver.url, { method: "POST", body, headers })).status;

  it.each([
    ["is missing", undefined],
    ["is empty", ""],
    ["is what jq makes of a refusal", "null"],
  ])("does not start if its secret %s", { timeout: 120_000 }, async (_, wrong) => {
    const { exit, out, err } = await endOfReceiver(ending, language, wrong);
    expect([exit, out]).toEqual([1, ""]);
    expect(err).toMatch(/^(.* )?WEBHOOK_SECRET must begin with whsec_\.\n/);
    expect(err).not.toMatch(/Traceback|\bat /);
  });

  it("accepts what the service sends", async (test) => {
    const queue = await makeQueue(test, server);
    const job = await submit(server, queue, { text: "é漢" }, { webhook: receiver.url });
    await call(server, "POST", `/v2/${queue}/cancel/${job}`);
    const deliveries = await until(async () => {
      const reply = await call(server, "GET", `/v1/webhooks/deliveries?jobId=${job}`);
      return reply.body[0]?.attempts.length > 0 && reply.body;
    });
    expect(deliveries).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
    await until(() => receiver.printed().includes(`${job} CANCELLED`));
  });

  it("accepts a signature beside that of another secret, before it or after it", async () => {
    expect([await post(signed({ by: [other, secret] })), await post(signed({ by: [secret, other] }))]).toEqual([
      200, 200,
    ]);
    expect(await post(signed({ timestamp: minutesAgo(4) }))).toBe(200);
    await until(() => receiver.printed().filter((line) => line === "by-hand COMPLETED").length === 3);
  });

  it.each([
    ["whose body was changed", () => signed({ text: body.replace("é", "e") })],
    ["signed with another secret", () => signed({ by: [other] })],
    ["signed six minutes ago", () => signed({ timestamp: minutesAgo(6) })],
    ["signed for six minutes hence", () => signed({ timestamp: minutesAgo(-6) })],
    ["whose id was changed", () => ({ ...signed(), "webhook-id": "msg_2" })],
    [
      "whose timestamp was changed",
      () => ({ ...signed({ timestamp: minutesAgo(6) }), "webhook-timestamp": minutesAgo(0) }),
    ],
    ["whose timestamp is no number", () => signed({ timestamp: "now" })],
    ["whose timestamp has a point", () => signed({ timestamp: `${minutesAgo(0)}.5` })],
    ["whose timestamp is very long", () => signed({ timestamp: "9".repeat(6_000) })],
    [
      "with another version of signatures",
      () => {
        const headers = signed();
        return { ...headers, "webhook-signature": headers["webhook-signature"]!.replace("v1,", "v2,") };
      },
    ],
    ["with an empty signature", () => ({ ...signed(), "webhook-signature": "" })],
    ["with a signature that is no base64", () => ({ ...signed(), "webhook-signature": "v1,\u00e9\u00ff=" })],
    ["without headers", () => ({})],
  ] as [string, () => Record<string, string>][])("refuses a request %s", async (_, headers) => {
    const before = receiver.printed().length;
    expect(await post(headers())).toBe(401);
    expect(receiver.printed()).toHaveLength(before);
  });
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { millraceHere, toServer } from "./millrace.js";
import { delivered, type Receiver, startReceiver } from "./receiver.js";

let server: TestServer;
let folder: string;
let receiver: Receiver;
/** A delivery of each endpoint's job. */
let deliveries: Record<"first" | "second", string>;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "millrace-webhooks-"));
  writeFileSync(join(folder, "handler.js"), "export default () => 1;");
  receiver = await startReceiver();
  deliveries = { first: await deliveryOf("first"), second: await deliveryOf("second") };
}, 60_000);
afterAll(async () => {
  await server?.end();
  receiver?.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...words: string[]) => millraceHere(["webhook", ...words], { env: toServer(server), folder });

async function deliveryOf(name: string): Promise<string> {
  const { out, err } = await millraceHere(["deploy", ".", "--name", name, "--json"], { env: toServer(server), folder });
  expect(err).not.toMatch(/^!/m);
  return delivered(server, JSON.parse(out).id, receiver);
}

describe("A user's webhooks on the command line:", () => {
  it("the secret that signs them is printed alone, for a variable", async () => {
    const { secret } = (await call(server, "GET", "/v1/webhooks/secret")).body;
    expect(secret).toMatch(/^whsec_\S+$/);
    expect(await run("secret")).toEqual({ exit: 0, out: `${secret}\n`, err: "" });
  });

  it.each(["first", "second"] as const)(
    "deliveries of one endpoint's jobs are listed by its name: %s",
    async (name) => {
      const { out } = await run("deliveries", "--endpoint", name, "--json");
      expect(JSON.parse(out).map(({ id }: { id: string }) => id)).toEqual([deliveries[name]]);
      expect(await run("deliveries", "--endpoint", "third")).toMatchObject({
        exit: 2,
        err: expect.stringContaining('Endpoint "third" does not exist.'),
      });
    },
  );

  it("where they go is called a receiver", async () => {
    expect((await run("pause", "--help")).out).toMatch(/^Usage: millrace webhook pause \[options\] <receiver>$/m);
    expect(await run("get", "lost")).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/^Receiver "lost" does not/),
    });
  });

  it("a receiver to which nothing was sent yet cannot be paused, and the one that was probably meant is named", async () => {
    const { port } = new URL(receiver.origin);
    const { exit, err } = await run("pause", `https://127.0.0.1:${port}/hook`);
    expect(exit).toBe(2);
    expect(err).toContain(`There is no receiver "https://127.0.0.1:${port}" yet: nothing was sent there`);
    expect(err).toContain(`Did you mean "${receiver.origin}"?`);
  });

  it("a pause or a resumption that had nothing to change says so", async () => {
    const url = `${receiver.origin}/hook`;
    expect((await run("resume", url)).err).toBe("It was not paused: nothing has changed.\n");
    expect((await run("pause", url)).err).toBe("");
    expect((await run("pause", url)).err).toBe("It was paused already: nothing has changed.\n");
    expect((await run("resume", url)).err).toBe("");
  });
});

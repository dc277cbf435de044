import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { callsHere } from "./millrace.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "millrace-teams-"));
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

const { run, json } = callsHere(() => ({ server, folder }));
const names = (list: { name: string }[]) => list.map(({ name }) => name);

/** A user with a key. */
async function member(name: string): Promise<{ id: string; keyId: string; key: string }> {
  const { id } = await json(["user", "create", `name=${name}`]);
  const made = await json(["key", "create", "name=laptop", `userId=${id}`]);
  return { id, keyId: made.id, key: made.key };
}

describe("An admin manages the keys of another user", () => {
  it("which are listed by the user's name or id", async () => {
    const { id } = await member("vision team");
    for (const user of ["vision team", id])
      expect(names(await json(["key", "list", "--user", user]))).toEqual(["laptop"]);
    expect(names(await json(["key", "list"]))).toEqual(["bootstrap"]);
    expect(await run(["key", "list", "--user", "nobody"])).toMatchObject({
      exit: 2,
      err: expect.stringContaining('User "nobody" does not exist.'),
    });
  });

  it("by their ids: shows, changes, rotates and deletes them", async () => {
    const { id, keyId, key } = await member("speech team");
    expect(await json(["key", "get", keyId])).toMatchObject({ id: keyId, userId: id });
    expect(await json(["key", "update", keyId, "scope=read"])).toMatchObject({ scope: "read" });
    const rotated = await json(["key", "rotate", keyId]);
    expect((await run(["key", "list"], key)).exit).toBe(0); // the old one works on for a day
    expect((await run(["key", "delete", keyId, "--yes"])).exit).toBe(0);
    expect((await run(["key", "list"], rotated.key)).exit).toBe(3);
  });

  it("and limits a new one to an endpoint of its user", async () => {
    const { id, key } = await member("chosen");
    await json(["template", "create", "name=t", "imageName=alpine:3"], key);
    const endpoint = await json(["endpoint", "create", "name=e", "templateId=t", "workersMax=0"], key);
    const scope = (id: string) => `scope=${JSON.stringify({ endpoints: [{ id, access: "run" }] })}`;
    const made = await json(["key", "create", "name=ci", `userId=${id}`, scope(endpoint.id)]);
    expect(made.scope.endpoints).toEqual([{ id: endpoint.id, access: "run" }]);
    expect(await run(["key", "create", "name=ci", `userId=${id}`, scope("00000000000000")])).toMatchObject({
      exit: 3,
      err: expect.stringContaining("00000000000000"),
    });
    expect((await run(["key", "create", "name=ci", `userId=${id}`, scope("unknown")])).exit).toBe(2);
  });

  it("and sees in a list what each may do, and when it ends", async () => {
    const { id, keyId } = await member("listed");
    const line = async (...words: string[]) => (await run(words)).out.split("\n")[1] ?? "";
    expect(await line("key", "list", "--user", "listed")).toMatch(/ never +all$/);
    expect(await line("key", "update", keyId, "scope=read", "expiresAt=2000-01-01T00:00:00Z")).toMatch(
      / expired +read$/,
    );
    expect(await line("key", "update", keyId, "expiresAt=2100-01-31T12:00:00Z")).toMatch(
      / 2100-0\d-\d\d \d\d:\d\d +read$/,
    );
    expect(await line("key", "rotate", keyId, "--overlap", "172800")).toMatch(
      /; old text until 20\d\d-\S+ \d\d:\d\d +read$/,
    );
    expect(await line("user", "update", id, "quotas.workers=10")).toMatch(/ workers 10$/);
  });

  it("but a member only its own", async () => {
    const [one, other] = [await member("one"), await member("other")];
    for (const words of [["get"], ["update", "name=x"], ["rotate"], ["delete", "--yes"]]) {
      const [verb = "", ...more] = words;
      expect(await run(["key", verb, other.keyId, ...more], one.key)).toMatchObject({
        exit: 2,
        err: expect.stringContaining(
          `Key "${other.keyId}" does not exist. An admin gives another user's key by its id.`,
        ),
      });
    }
    expect((await run(["key", "list", "--user", other.id], one.key)).exit).not.toBe(0);
  });
});

it("A rotated key works on for as long as --overlap says", async () => {
  const { keyId, key } = await member("overlap");
  expect((await run(["key", "rotate", keyId, "--overlap", "soon"])).err).toMatch(/whole number/);
  const { oldUntil } = await json(["key", "rotate", keyId, "--overlap", "600"]);
  expect(Math.abs(Date.parse(oldUntil) - Date.now() - 600_000)).toBeLessThan(60_000);
  expect(await json(["key", "rotate", keyId, "--overlap", "0"])).not.toHaveProperty("oldUntil");
  expect((await run(["key", "list"], key)).exit).toBe(3);
});

it("A rotated bootstrap key is said to be in the server's data directory, where it is", async () => {
  const { out } = await run(["key", "rotate", "bootstrap"]);
  expect(out).toMatch(/^key {2}mr_\S+\nIt is also in the file api-key of the server's data directory\./m);
  const kept = readFileSync(join(server.dataDir, "api-key"), "utf8").trim();
  expect(out).toContain(`key  ${kept}\n`);
  server = { ...server, key: kept };
});

describe("A user that owns something is deleted", () => {
  const owner = async (name: string) => {
    const made = await member(name);
    await json(["secret", "create", `name=${name}`, "value=12345678"], made.key);
    return made;
  };

  it("only if it is said what becomes of that", async () => {
    await owner("plain");
    expect(await run(["user", "delete", "plain", "--yes"])).toMatchObject({
      exit: 3,
      err: 'The user "plain" owns 1 secret.  millrace user delete plain --transfer-to <user> | --delete-resources\n',
    });
  });

  it("and another user gets it", async () => {
    const heir = await member("heir");
    await owner("leaver");
    const asked = await run(["user", "delete", "leaver", "--transfer-to", "heir"]);
    expect(asked).toMatchObject({ exit: 2, err: expect.stringContaining("goes to the user heir.") });
    expect(asked.err).toContain("millrace user delete leaver --transfer-to heir --yes");
    const { id } = await json(["secret", "create", "name=leaver", "value=12345678"], heir.key);
    expect((await run(["user", "delete", "leaver", "--transfer-to", "heir", "--yes"])).err).toMatch(/^Both users/);
    await json(["secret", "delete", id, "--yes"], heir.key);
    expect((await run(["user", "delete", "leaver", "--transfer-to", "heir", "--yes"])).exit).toBe(0);
    expect(names(await json(["secret", "list"], heir.key))).toEqual(["leaver"]);
  });

  it("unless the other may not have it, which is said with the names that were written", async () => {
    await json(["user", "create", "name=full", "quotas.volumesGb=0"]);
    const { key } = await member("has-volume");
    await json(["volume", "create", "name=v", "size=1", "dataCenterId=EU-RO-1"], key);
    const { err } = await run(["user", "delete", "has-volume", "--transfer-to", "full", "--yes"]);
    expect(err).toMatch(/^The user "full" would have more than it may \(quotas\.volumesGb 1 > 0\)/);
  });

  it("and it is deleted too", async () => {
    const { id } = await owner("gone");
    const asked = await run(["user", "delete", "gone", "--delete-resources"]);
    expect(asked.err).toMatch(/all that it owns is deleted.*--delete-resources --yes/);
    expect((await run(["user", "delete", "gone", "--delete-resources", "--yes"])).exit).toBe(0);
    expect((await call(server, "GET", `/v1/users/${id}`)).status).toBe(404);
  });
});

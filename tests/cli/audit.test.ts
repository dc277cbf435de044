import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { callsHere } from "./millrace.js";

let server: TestServer;
let folder: string;
let team: { id: string; key: string };
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "millrace-audit-"));
  writeFileSync(join(folder, "handler.js"), "export default () => 1;");
  const { id } = await json(["user", "create", "name=vision team"]);
  team = { id, key: (await json(["key", "create", "name=laptop", "userId=vision team"])).key };
  await json(["template", "create", "name=mill", `imageName=${folder}`]);
  await json(["endpoint", "create", "name=mill", "templateId=mill", "workersMax=2"]);
  await json(["endpoint", "update", "mill", "workersMax=3"]);
  await json(["template", "create", "name=theirs", "imageName=an/image"], team.key);
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

const { run, json } = callsHere(() => ({ server, folder }));
const actions = async (words: string[], key?: string): Promise<string[]> =>
  (await json(["audit", ...words], key)).entries.map(({ action }: { action: string }) => action);

describe("The audit log on the command line", () => {
  it("says who changed what, with which key, and the fields that differ", async () => {
    const { out } = await run(["audit"]);
    expect(out).toMatch(/ template\.create +\S+ +vision team +mr_\w{3} +127\.0\.0\.1$/m);
    expect(out).toMatch(/ endpoint\.update +\S+ +admin +mr_\w{3} +127\.0\.0\.1 +workersMax 2 → 3$/m);
    expect(out).toMatch(/ user\.create +user_\S+ +admin .* vision team$/m);
  });

  it("is searched by names and ids", async () => {
    expect(await actions(["--resource", "mill"])).toEqual(["endpoint.update", "endpoint.create"]);
    expect(await actions(["--resource", "vision team"])).toEqual(["user.create"]);
    for (const user of ["vision team", team.id]) expect(await actions(["--user", user])).toEqual(["template.create"]);
    expect(await actions(["--key", "laptop"], team.key)).toEqual(["template.create"]);
    expect(await actions(["--action", "endpoint.update"])).toEqual(["endpoint.update"]);
  });

  it("is searched for what is deleted, and for a deleted user's changes, by their ids", async () => {
    const { id } = await json(["template", "create", "name=gone", "imageName=an/image"]);
    await json(["template", "delete", "gone", "--yes"]);
    expect(await actions(["--resource", id])).toEqual(["template.delete", "template.create"]);
    expect((await run(["audit", "--action", "template.delete"])).out).toMatch(new RegExp(` ${id} .* gone$`, "m"));
    expect(await run(["audit", "--resource", "gone"])).toMatchObject({
      exit: 0,
      err: expect.stringMatching(/^No change of "gone"\. What is deleted has only its id: millrace audit --action/),
    });
    const user = await json(["user", "create", "name=leaver"]);
    const { key } = await json(["key", "create", "name=k", "userId=leaver"]);
    await json(["secret", "create", "name=s", "value=12345678"], key);
    await json(["user", "delete", "leaver", "--delete-resources", "--yes"]);
    expect(await actions(["--user", user.id])).toEqual(["secret.create"]);
  });

  it("is read page by page", async () => {
    const all = (await json(["audit"])).entries;
    const { out, err } = await run(["audit", "--limit", "2"]);
    expect(out.trimEnd().split("\n")).toHaveLength(3);
    const [, ...words] = /^Older: millrace (.*)\n$/.exec(err)?.[1]?.split(" ") ?? [];
    expect((await json(["audit", ...words])).entries).toEqual(all.slice(2, 4));
  });

  it("refuses an action that does not exist", async () => {
    expect(await run(["audit", "--action", "endpoint.updat"])).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/Allowed choices are .*endpoint\.update/),
    });
  });
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { millraceHere, startOnTerminal, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "millrace-nouns-"));
  writeFileSync(join(folder, "handler.js"), "export default () => 1;");
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

const ending = { onTestFinished: (undo: () => unknown) => onTestFinished(async () => void (await undo())) };
const run = (words: string[], input = "") => millraceHere(words, { env: toServer(server), folder, input });
const json = async (...words: string[]) => {
  const ended = await run([...words, "--json"]);
  expect(ended).toMatchObject({ exit: 0, err: "" });
  return JSON.parse(ended.out);
};

describe("What a server keeps is created, listed, shown, changed and deleted by its name:", () => {
  it.each([
    ["template", [`imageName=${"."}`, "env.LEVEL=info"], ["env.MORE=2"], { env: { LEVEL: "info", MORE: 2 } }],
    ["volume", ["size=5", "dataCenterId=EU-RO-1"], ["size=6"], { size: 6 }],
    ["registry", ["username=me", "password=@token.txt"], ["username=you", "password=123456"], {}],
    ["key", [], ["name=noun-2"], { name: "noun-2" }],
    ["user", ["role=member", "quotas.workers=4"], ["spendLimit=2.5"], { quotas: { workers: 4 }, spendLimit: 2.5 }],
  ] as const)("a %s", async (noun, created, updated, after) => {
    writeFileSync(join(folder, "token.txt"), "very-secret-token\n");
    const fields = created.map((field) => field.replace("imageName=.", `imageName=${folder}`));
    const made = await json(noun, "create", "name=noun", ...fields);
    expect(made).toMatchObject({ name: "noun" });
    const listed = await run([noun, "list"]);
    expect(listed.out).toMatch(/^noun +\S/m);
    expect(listed.out).not.toContain("very-secret-token");
    expect(await json(noun, "update", "noun", ...updated)).toMatchObject({ id: made.id });
    const shown = await json(noun, "get", made.id);
    const wanted: Record<string, unknown> = { ...after };
    if ("env" in after) wanted.env = { LEVEL: "info", MORE: "2" };
    expect(shown).toMatchObject({ id: made.id, ...wanted });
    const asked = await run([noun, "delete", made.id]);
    expect(asked).toMatchObject({ exit: 2, err: expect.stringMatching(/^This deletes the \w+ ".*: .*--yes\n$/) });
    expect((await run([noun, "delete", made.id, "--yes"])).exit).toBe(0);
    expect(await run([noun, "get", made.id])).toMatchObject({
      exit: 2,
      err: expect.stringContaining("does not exist"),
    });
  });

  it("an endpoint, whose workers and jobs end with it", async () => {
    const template = await json("template", "create", "name=for-endpoint", `imageName=${folder}`);
    await json("endpoint", "create", "name=mill", `templateId=${template.id}`, "workersMin=1");
    const listed = await run(["endpoint", "list"]);
    expect(listed.out.split("\n")[0]).toMatch(/^name +id +for +workers +runs on +version$/);
    expect(listed.out).toMatch(/^mill +\w+ +jobs +1–3 +/m);
    expect(await json("endpoint", "update", "mill", "workersMax=5")).toMatchObject({ workersMax: 5 });
    expect(await json("endpoint", "restart", "mill")).toMatchObject({ version: 2 });
    const asked = await run(["endpoint", "delete", "mill"]);
    expect(asked.err).toContain("its jobs that wait are cancelled");
    expect((await run(["endpoint", "delete", "mill", "--yes"])).out).toBe("mill is deleted.\n");
    expect((await run(["endpoint", "list"])).err).toBe(
      "None yet. millrace deploy FOLDER, or a container image: millrace deploy --name NAME --image IMAGE\n",
    );
  });

  it.each([
    ["n", 130, "Nothing was changed."],
    ["\u0003", 130, "Nothing was changed."],
    ["y", 0, "asked is deleted."],
  ])("on a terminal after a question: %j ends with %i", async (key, exit, words) => {
    const made = await json("volume", "create", "name=asked", "size=1", "dataCenterId=EU-RO-1");
    const asking = startOnTerminal(ending, ["volume", "delete", "asked"], { env: toServer(server) });
    await asking.shows(/This deletes the volume "asked": .*Go on\?/);
    asking.type(key);
    expect(await asking.ended).toBe(exit);
    expect(asking.screen()).toContain(words);
    const left = await run(["volume", "delete", made.id, "--yes"]);
    expect(left.exit).toBe(exit === 0 ? 2 : 0);
  });

  it("a secret, whose value comes from standard input and is never shown", async () => {
    const made = await run(["secret", "create", "name=hf", "value=-", "description=Hugging Face"], "s3cr3t-value\n");
    expect(made.exit).toBe(0);
    const listed = await run(["secret", "list"]);
    expect(listed.out).toMatch(/^hf +Hugging Face +\d+ s ago$/m);
    for (const { out, err } of [made, listed, await run(["secret", "get", "hf"])])
      expect(out + err).not.toContain("s3cr3t-value");
    const updated = await run(["secret", "update", "hf", "value=-"], "another-value\n");
    expect(updated).toMatchObject({ exit: 0, out: expect.stringMatching(/^hf +Hugging Face +/m) });
    expect(updated.out + updated.err).not.toContain("another-value");
    const { entries } = (await call(server, "GET", "/v1/audit?action=secret.update")).body;
    expect(entries).toMatchObject([{ after: { value: "…" } }]);
    expect((await run(["secret", "delete", "hf", "--yes"])).exit).toBe(0);
    expect(await json("secret", "create", "name=2026", "value=12345678", "description=1")).toMatchObject({
      name: "2026",
    });
  });

  it("a registry, whose username and password change together", async () => {
    await json("registry", "create", "name=images", "username=me", "password=123456");
    const changes = async () => (await call(server, "GET", "/v1/audit?action=registryAuth.update")).body.entries.length;
    const before = await changes();
    for (const fields of [["password=new"], ["username=me", "password=new", "name=other"]])
      expect(await run(["registry", "update", "images", ...fields])).toMatchObject({
        exit: 2,
        err: expect.stringMatching(/change together, and nothing else/),
      });
    expect(await run(["registry", "update", "images", "username=me", "password="])).toMatchObject({
      exit: 3,
      err: expect.stringContaining("password"),
    });
    expect(await changes()).toBe(before);
    expect(await json("registry", "update", "images", "username=me", "password=new")).toMatchObject({ name: "images" });
    expect(await changes()).toBe(before + 1);
    await json("registry", "delete", "images", "--yes");
  });

  it("a key, whose text is shown once, and which is rotated", async () => {
    const made = await json("key", "create", "name=ci");
    expect(made.key).toMatch(/^mr_/);
    expect((await run(["key", "list"])).out).not.toContain(made.key);
    const rotated = await json("key", "rotate", "ci");
    expect(rotated.key).not.toBe(made.key);
  });

  it("prices, of which those that are not named stay", async () => {
    await json("price", "update", "vcpu=0.01", 'gpus={"NVIDIA L4":0.5}');
    await json("price", "update", "memoryGb=0.002");
    expect((await run(["price", "get"])).out).toMatch(
      /^an hour of +costs\nNVIDIA L4 +0\.5\na virtual processor +0\.01\n/,
    );
    expect(await json("price", "list")).toMatchObject({ vcpu: 0.01, memoryGb: 0.002, gpus: { "NVIDIA L4": 0.5 } });
    expect(await run(["price", "delete", "NVIDIA L5"])).toMatchObject({
      exit: 2,
      err: 'There is no price for "NVIDIA L5".  millrace price list\n',
    });
    expect(await json("price", "delete", "NVIDIA L4")).toMatchObject({ vcpu: 0.01, gpus: {} });
    expect(await json("price", "create", 'gpus={"NVIDIA L4":0.4}')).toMatchObject({ gpus: { "NVIDIA L4": 0.4 } });
  });
});

describe("The commands for resources", () => {
  it("take all fields from a file", async () => {
    writeFileSync(join(folder, "volume.json"), '{"name":"filed","size":3,"dataCenterId":"EU-RO-1"}');
    expect(await json("volume", "create", "@volume.json")).toMatchObject({ name: "filed", size: 3 });
    await json("volume", "delete", "filed", "--yes");
  });

  it("say which fields the server has ignored", async () => {
    const made = await run(["volume", "create", "name=odd", "size=3", "dataCenterId=EU-RO-1", "colour=blue"]);
    expect(made).toMatchObject({ exit: 0, err: expect.stringMatching(/has ignored them: .*colour/) });
    await json("volume", "delete", "odd", "--yes");
  });

  it.each([
    [["volume", "create", "size"], 2, '"size" is no field: write name=value.'],
    [["volume", "create", "@nowhere.json"], 2, "nowhere.json cannot be read"],
    [["volume", "create", "name=v", "size=-1", "dataCenterId=EU-RO-1"], 3, "'size'"],
    [["volume", "get", "nothing"], 2, 'Volume "nothing" does not exist.'],
    [["pod", "list"], 0, "None yet. millrace pod create"],
    [["webhook", "list"], 0, "None yet. millrace run ENDPOINT"],
    [["webhook", "create", "url=https://app.example"], 2, "A webhook is part of a job"],
    [["webhook", "update", "https://app.example", "a=b"], 2, "A webhook is part of a job"],
    [["webhook", "delete", "https://app.example", "--yes"], 2, "forgotten by itself"],
  ])("%j ends with %i", async (words, exit, why) => {
    expect(await run(words)).toMatchObject({ exit, err: expect.stringContaining(why) });
  });
});

describe("A name stands for an id in a field:", () => {
  it("a template's, a volume's and a registry's", async () => {
    const registry = await json("registry", "create", "name=pull", "username=me", "password=123456");
    const fields = [`imageName=${folder}`, "containerRegistryAuthId=pull"];
    const template = await json("template", "create", "name=2026", ...fields);
    expect(template.containerRegistryAuthId).toBe(registry.id);
    const one = await json("volume", "create", "name=one", "size=1", "dataCenterId=EU-RO-1");
    const two = await json("volume", "create", "name=two", "size=1", "dataCenterId=EU-RO-1");
    const made = await json("endpoint", "create", "name=named", "templateId=2026", "networkVolumeId=one");
    expect(made).toMatchObject({ templateId: template.id, networkVolumeIds: [one.id] });
    expect(await json("endpoint", "update", "named", `networkVolumeIds=["two","${one.id}"]`)).toMatchObject({
      networkVolumeIds: [two.id, one.id],
    });
    expect(await json("endpoint", "update", "named", "networkVolumeId=null")).toMatchObject({ networkVolumeIds: [] });
    const pod = ["name=pod", "templateId=2026", "computeType=CPU", 'dockerStartCmd=["true"]'];
    expect(await json("pod", "create", ...pod)).toMatchObject({ templateId: template.id });
    await json("pod", "delete", "pod", "--yes");
  });

  it("a key's user, and the endpoints that it is for", async () => {
    const user = await json("user", "create", "name=owner");
    expect(await json("key", "create", "name=of-owner", "userId=owner")).toMatchObject({ userId: user.id });
    const { id } = await json("endpoint", "get", "named");
    const scope = (id: string) => JSON.stringify({ endpoints: [{ id, access: "run" }] });
    const key = await json("key", "create", "name=of-named", `scope=${scope("named")}`);
    expect(JSON.stringify(key.scope)).toBe(scope(id));
  });

  it("of which several are called the same, or none, is refused", async () => {
    const twin = () => json("volume", "create", "name=twin", "size=1", "dataCenterId=EU-RO-1");
    const ids = [(await twin()).id, (await twin()).id];
    const ambiguous = await run(["endpoint", "update", "named", "networkVolumeId=twin"]);
    expect(ambiguous).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/^2 are called "twin": use an id, one of /),
    });
    for (const id of ids) expect(ambiguous.err).toContain(id);
    expect(await run(["endpoint", "create", "name=x", "templateId=20206"])).toMatchObject({
      exit: 2,
      err: 'Template "20206" does not exist. Did you mean "2026"?  millrace template list\n',
    });
  });
});

describe("What people read", () => {
  it.each([
    [["template", "create", "name=read", "imageName=."], "millrace endpoint create name=read templateId=read"],
    [["endpoint", "create", "name=read", "templateId=read"], 'millrace run read \'{"text":"hello"}\''],
    [["endpoint", "update", "read", "workersMax=2"], "millrace endpoint get read"],
    [["volume", "create", "name=read", "size=1", "dataCenterId=EU-RO-1"], "networkVolumeId=read"],
    [["secret", "create", "name=read", "value=12345678"], "{{ RUNPOD_SECRET_read }}"],
    [["registry", "create", "name=read", "username=me", "password=123456"], "containerRegistryAuthId=read"],
    [["user", "create", "name=read"], "millrace key create name=read userId=read"],
    [["user", "update", "read", "name=renamed"], "millrace user get renamed"],
    [["key", "create", "name=read"], "millrace context add NAME --url http"],
  ])("of %j is a row, and what to do next", async (words, next) => {
    const { exit, out } = await run(words.map((word) => (word === "imageName=." ? `imageName=${folder}` : word)));
    expect(exit).toBe(0);
    expect(out).toMatch(/^name +\S[^\n]*\n(read|renamed) +\S/);
    expect(out).toContain(next);
    expect(out).not.toMatch(/^[{[]/m);
  });

  it("of a new key and a new user has its secret, and who can read it later", async () => {
    expect((await run(["key", "create", "name=once"])).out).toMatch(/^key {2}mr_\S+\nKeep it now/m);
    expect((await run(["user", "create", "name=once"])).out).toMatch(
      /^webhookSecret {2}whsec_\S+\nIt signs .* show it: GET \/v1\/webhooks\/secret$/m,
    );
  });

  it("of all fields is a line for each, an object's as they are changed", async () => {
    await json("template", "update", "read", "env.LEVEL=info", 'ports=["8888/http","22/tcp"]');
    const { out } = await run(["template", "get", "read"]);
    expect(out).toMatch(/^name +read$/m);
    expect(out).toMatch(/^env\.LEVEL +info$/m);
    expect(out).toMatch(/^ports +8888\/http, 22\/tcp$/m);
    expect(out).toMatch(/^readme +–$/m);
  });

  it("of a receiver has its state as the API has it, and what has failed", async () => {
    const { id } = await json("endpoint", "get", "read");
    const webhook = `${server.url}/v1/nowhere`;
    await call(server, "POST", `/v2/${id}/runsync`, { input: {}, webhook });
    await until(async () => (await call(server, "GET", "/v1/webhooks/receivers")).body[0]?.failures > 0);
    expect((await run(["webhook", "list"])).out).toMatch(/ healthy +[123] +0 +it answered \d+/);
    await json("webhook", "pause", server.url);
    expect((await run(["webhook", "list"])).out).toMatch(/paused .*ago/);
  });
});

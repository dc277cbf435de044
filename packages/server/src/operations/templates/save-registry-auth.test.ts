import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { rollBack } from "../endpoints/releases.js";
import { createRegistryAuth, deleteRegistryAuth, ownRegistryAuth, updateRegistryAuth } from "./save-registry-auth.js";
import { createTemplate, deleteTemplate, updateTemplate } from "./save-template.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const given = { username: "someone", password: "a secret word" };
const create = (name = "mine", caller = scene.admin) => createRegistryAuth(scene.parts, caller, { name, ...given });
const privateTemplate = (containerRegistryAuthId: string, caller = scene.admin) =>
  createTemplate(scene.parts, caller, { name: "a", imageName: "registry.example/image:1", containerRegistryAuthId });

describe("Credentials of a registry", () => {
  it("are stored encrypted, and decrypted only by the vault", async () => {
    const made = await create();
    const [row] = await scene.stores.registryAuths.all();
    expect(JSON.stringify(row)).not.toMatch(/someone|secret word/);
    const { vault } = scene.parts;
    expect([vault.open(made.username), vault.open(made.password)]).toEqual(["someone", "a secret word"]);
  });

  it("have a name that is unique among their owner's", async () => {
    await create();
    await refused(create(), "IN_USE", /'mine'/);
    const { caller } = await scene.stranger();
    expect((await create("mine", caller)).ownerNo).toBe(caller.ownerNo);
  });

  it("are bounded in number for each user, because every server keeps them in memory", async () => {
    for (let n = 0; n < limits.registryAuthsPerUserMax; n++) await create(`${n}`);
    await refused(create("one more"), "IN_USE", /A user may have 100 .* delete one first/);
    const { caller } = await scene.stranger();
    expect((await create("mine", caller)).ownerNo).toBe(caller.ownerNo);
    const [first] = scene.parts.registry.registryAuths();
    await deleteRegistryAuth(scene.parts, scene.admin, first!);
    await create("one more");
  });

  it("are deleted in turns with other work, however many endpoints there are", async () => {
    const made = await create();
    for (let n = 0; n < 20; n++) await scene.endpoint();
    const deleting = () => deleteRegistryAuth(scene.parts, scene.admin, made);
    expect((await withTurns(deleting)).waits).toBeGreaterThanOrEqual(20);
  });

  it("are refused if user or password is missing or invalid", async () => {
    for (const part of ["name", "username", "password"]) {
      const input = { name: "mine", ...given, [part]: "" };
      await refused(createRegistryAuth(scene.parts, scene.admin, input), "INVALID_INPUT", new RegExp(part));
    }
    await refused(create("a\u0000b"), "INVALID_INPUT", /visible/);
    for (const [part, word] of [
      ["username", "copied with its line end\n"],
      ["password", "a\x00b"],
    ] as const) {
      const input = { name: "mine", ...given, [part]: word };
      await refused(
        createRegistryAuth(scene.parts, scene.admin, input),
        "INVALID_INPUT",
        new RegExp(`'${part}' contains`),
      );
    }
    const keyFile = { username: "_json_key", password: '{\n\t"type": "service_account"\n}\n' };
    expect((await createRegistryAuth(scene.parts, scene.admin, { name: "a key file", ...keyFile })).name).toBe(
      "a key file",
    );
    const made = await create();
    const empty = { ...given, password: "" };
    await refused(updateRegistryAuth(scene.parts, scene.admin, made, empty), "INVALID_INPUT", /password/);
  });

  it("keep their id and name when they are changed", async () => {
    const made = await create();
    const changed = { username: "other", password: "word" };
    const { id, name, username, password } = await updateRegistryAuth(scene.parts, scene.admin, made, changed);
    const { vault } = scene.parts;
    expect([id, name, vault.open(username), vault.open(password)]).toEqual([made.id, "mine", "other", "word"]);
    expect(await scene.stores.registryAuths.all()).toHaveLength(1);
  });

  it("of another user are unknown for reading, changing, deleting and using", async () => {
    const { id, ...rest } = await create();
    const { caller } = await scene.stranger();
    expect(() => ownRegistryAuth(scene.parts, caller, id)).toThrow(/no container registry auth/);
    await refused(updateRegistryAuth(scene.parts, caller, { id, ...rest }, given), "NOT_FOUND");
    await refused(deleteRegistryAuth(scene.parts, caller, { id, ...rest }), "NOT_FOUND");
    await refused(privateTemplate(id, caller), "INVALID_INPUT", /containerRegistryAuthId/);
  });

  it("cannot be deleted while a template uses them", async () => {
    const made = await create();
    const template = await privateTemplate(made.id);
    await refused(deleteRegistryAuth(scene.parts, scene.admin, made), "IN_USE", new RegExp(template.id));
    await deleteTemplate(scene.parts, scene.admin, template);
    await deleteRegistryAuth(scene.parts, scene.admin, made);
    await refused(deleteRegistryAuth(scene.parts, scene.admin, made), "NOT_FOUND");
  });

  /** An endpoint that was rolled back to a version with these credentials, which its template no longer has. */
  async function broughtBack(id: string) {
    const template = await privateTemplate(id);
    const endpoint = await scene.endpoint({ templateId: template.id });
    await updateTemplate(scene.parts, scene.admin, template, { containerRegistryAuthId: null });
    await rollBack(scene.parts, scene.admin, endpoint.id, 1);
    return { endpoint: scene.now(endpoint), template };
  }

  it("cannot be deleted while an endpoint's present version uses them", async () => {
    const made = await create();
    const { endpoint, template } = await broughtBack(made.id);
    await refused(deleteRegistryAuth(scene.parts, scene.admin, made), "IN_USE", new RegExp(endpoint.id));
    await updateTemplate(scene.parts, scene.admin, template, { env: { A: "1" } });
    await rollBack(scene.parts, scene.admin, endpoint.id, 2);
    await deleteRegistryAuth(scene.parts, scene.admin, made);
    await refused(rollBack(scene.parts, scene.admin, endpoint.id, 1), "INVALID_INPUT", new RegExp(made.id));
  });

  it("cannot be deleted while a version that serves in place of a stopped one uses them", async () => {
    const made = await create();
    const template = await privateTemplate(made.id);
    const endpoint = await scene.endpoint({ templateId: template.id });
    const { registry } = scene.parts;
    await registry.noteStart(endpoint, 1, { failedStarts: 0, at: 1, verdict: undefined });
    await updateTemplate(scene.parts, scene.admin, template, { containerRegistryAuthId: null });
    await registry.noteStart(scene.now(endpoint), 2, { failedStarts: 3, at: 2, verdict: "no" });
    expect(scene.now(endpoint)).toMatchObject({ version: 2, heldVersion: 2 });
    await refused(deleteRegistryAuth(scene.parts, scene.admin, made), "IN_USE", new RegExp(endpoint.id));
  });

  it("that are changed end the pause of an endpoint if only its version uses them", async () => {
    const made = await create();
    const { endpoint } = await broughtBack(made.id);
    const failed = { failedStarts: 4, at: scene.clock.now(), verdict: "no access" };
    await scene.parts.registry.noteStart(endpoint, endpoint.version, failed);
    await updateRegistryAuth(scene.parts, scene.admin, made, given);
    expect(scene.now(endpoint)).toMatchObject({ failedStarts: 0, version: endpoint.version });
  });

  it.each(["", null])("are cleared from a template by %j", async (none) => {
    const template = await privateTemplate((await create()).id);
    const cleared = await updateTemplate(scene.parts, scene.admin, template, { containerRegistryAuthId: none });
    expect(cleared.settings).not.toHaveProperty("containerRegistryAuthId");
  });

  it("that do not exist are refused, and a template with credentials may be changed without naming them", async () => {
    await refused(privateTemplate("nothing0000000"), "INVALID_INPUT", /nothing0000000/);
    const { id } = await create();
    const template = await privateTemplate(id);
    const saved = await updateTemplate(scene.parts, scene.admin, template, { readme: "more" });
    expect(saved.settings.containerRegistryAuthId).toBe(id);
  });

  it("that are changed end the pause of endpoints that failed with them, and of no others", async () => {
    const made = await create();
    const waiting = await scene.endpoint({ templateId: (await privateTemplate(made.id)).id });
    const other = await scene.endpoint();
    const failed = { failedStarts: 4, at: scene.clock.now(), verdict: "no access" };
    for (const each of [waiting, other]) await scene.parts.registry.noteStart(each, 1, failed);
    await updateRegistryAuth(scene.parts, scene.admin, made, given);
    expect(scene.now(waiting)).toMatchObject({ failedStarts: 0, version: waiting.version });
    expect(scene.now(other)).toMatchObject({ failedStarts: 4 });
  });
});

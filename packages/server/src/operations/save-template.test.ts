import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { templateDefaults } from "../domain/template.js";
import { refused, Scene } from "../testing/scene-fixture.js";
import { deleteEndpoint } from "./save-endpoint.js";
import { createTemplate, deleteTemplate, ownTemplate, type TemplateInput, updateTemplate } from "./save-template.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const image = "registry.example/image:1";
const create = (input: TemplateInput) => createTemplate(scene.parts, scene.admin, input);

describe("A new template", () => {
  it("has the defaults for what was not said", async () => {
    const made = await create({ name: "hello", imageName: image });
    expect(made.settings).toEqual({ ...templateDefaults, name: "hello", imageName: image });
  });

  it.each([".", "./handler", "file:handler"])("keeps the directory '%s' as an absolute path", async (imageName) => {
    mkdirSync(join(scene.directory, "handler"));
    const made = await create({ name: "hello", imageName });
    expect(made.settings.imageName).toBe(imageName === "." ? scene.directory : join(scene.directory, "handler"));
  });

  it("takes a directory as a file URL", async () => {
    expect((await create({ name: "a", imageName: `file://${scene.directory}` })).settings.imageName).toBe(
      scene.directory,
    );
    await refused(create({ name: "b", imageName: "file://elsewhere/handler" }), "INVALID_INPUT", /file URL/);
  });

  it("is refused where its directory is none", async () => {
    writeFileSync(join(scene.directory, "file"), "");
    await refused(create({ name: "a", imageName: "./nothing" }), "INVALID_INPUT", /not a directory/);
    await refused(create({ name: "a", imageName: "./file" }), "INVALID_INPUT", /not a directory/);
  });

  it("is refused without a name, with a name that is taken, and with an env that cannot be one", async () => {
    await create({ name: "taken", imageName: image });
    await refused(create({ name: "", imageName: image }), "INVALID_INPUT", /'name'/);
    await refused(create({ name: "taken", imageName: image }), "IN_USE", /'taken'/);
    await refused(create({ name: "a", imageName: image, env: { "A=B": "1" } }), "INVALID_INPUT", /env/);
  });

  it("of another user may have the same name, but no directory", async () => {
    const { caller } = await scene.stranger();
    await create({ name: "same", imageName: image });
    expect((await createTemplate(scene.parts, caller, { name: "same", imageName: image })).ownerNo).toBe(
      caller.ownerNo,
    );
    const local = { name: "local", imageName: scene.directory };
    await refused(createTemplate(scene.parts, caller, local), "UNAUTHORIZED", /admin/);
  });

  it("has no directory where local processes are turned off", async () => {
    await scene.close();
    scene = await Scene.open({ place: { localProcesses: false } });
    await refused(create({ name: "a", imageName: "." }), "INVALID_INPUT", /MILLRACE_LOCAL_PROCESSES/);
  });
});

describe("A change of a template", () => {
  it("changes what was sent, and clears by null", async () => {
    const made = await create({ name: "a", imageName: image, env: { A: "1" }, ports: ["80/http"], readme: "hello" });
    const renamed = await updateTemplate(scene.parts, scene.admin, made, { name: "b" });
    expect(renamed.settings).toEqual({ ...made.settings, name: "b" });
    const cleared = await updateTemplate(scene.parts, scene.admin, renamed, { env: null, ports: null, readme: null });
    expect(cleared.settings).toEqual({ ...templateDefaults, name: "b", imageName: image });
  });

  it('clears the registry credentials by ""', async () => {
    const made = await create({ name: "a", imageName: image, containerRegistryAuthId: "auth" });
    const cleared = await updateTemplate(scene.parts, scene.admin, made, { containerRegistryAuthId: "" });
    expect(cleared.settings).not.toHaveProperty("containerRegistryAuthId");
  });

  it.each([{ name: null }, { name: "" }, { imageName: null }, { imageName: "" }])(
    "never leaves it without a name or an image: %j is refused, or changes nothing",
    async (input) => {
      const made = await create({ name: "a", imageName: image });
      await updateTemplate(scene.parts, scene.admin, made, input).catch((refusal) => {
        expect(refusal).toMatchObject({ code: "INVALID_INPUT" });
      });
      expect(scene.parts.registry.template(made.id)?.settings).toMatchObject({ name: "a", imageName: image });
    },
  );

  it("to a name that is taken is refused, and to its own is not", async () => {
    await create({ name: "taken", imageName: image });
    const made = await create({ name: "a", imageName: image });
    await refused(updateTemplate(scene.parts, scene.admin, made, { name: "taken" }), "IN_USE");
    expect((await updateTemplate(scene.parts, scene.admin, made, { name: "a" })).settings.name).toBe("a");
  });

  it("that changes what workers are made of releases the endpoints that use it", async () => {
    const template = await scene.template();
    const [user, other] = [await scene.endpoint({ templateId: template.id }), await scene.endpoint()];
    const [worker, otherWorker] = [await scene.worker(user), await scene.worker(other)];
    await updateTemplate(scene.parts, scene.admin, template, { env: { A: "1" } });
    expect([scene.now(user).version, scene.now(other).version]).toEqual([2, 1]);
    expect([worker.row.wanted, otherWorker.row.wanted]).toEqual(["closed", "running"]);
  });

  it("of its name or readme releases nothing", async () => {
    const template = await scene.template();
    const user = await scene.endpoint({ templateId: template.id });
    const worker = await scene.worker(user);
    await updateTemplate(scene.parts, scene.admin, template, { name: "renamed", readme: "new", isPublic: true });
    expect([scene.now(user).version, worker.row.wanted]).toEqual([1, "running"]);
  });
});

describe("Deleting a template", () => {
  it("is refused while an endpoint uses it", async () => {
    const template = await scene.template();
    const user = await scene.endpoint({ templateId: template.id });
    await refused(deleteTemplate(scene.parts, template), "IN_USE", new RegExp(user.id));
    await deleteEndpoint(scene.parts, user, { setToZero: true });
    await deleteTemplate(scene.parts, template);
    await refused(() => ownTemplate(scene.parts, scene.admin, template.id), "NOT_FOUND");
  });
});

it("Another user's template is refused like an unknown one, public or not", async () => {
  const { caller } = await scene.stranger();
  const template = await create({ name: "a", imageName: image, isPublic: true });
  await refused(() => ownTemplate(scene.parts, caller, template.id), "NOT_FOUND");
  await refused(() => ownTemplate(scene.parts, caller, "nothing"), "NOT_FOUND");
});

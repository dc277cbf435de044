import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { templateDefaults } from "../../domain/endpoints/template.js";
import { limits } from "../../limits/index.js";
import { handlerCommand } from "../../providers/process/process-provider.js";
import { plainHost } from "../../testing/facts-fixture.js";
import { showReleases } from "../../testing/releases-fixture.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { deleteEndpoint } from "../endpoints/save-endpoint.js";
import { createTemplate, deleteTemplate, ownTemplate, type TemplateInput, updateTemplate } from "./save-template.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const image = "registry.example/image:1";
const create = (input: TemplateInput) => createTemplate(scene.parts, scene.admin, input);

describe("A new template", () => {
  it("has the defaults for absent fields", async () => {
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

  it("is refused if its directory does not exist", async () => {
    writeFileSync(join(scene.directory, "file"), "");
    await refused(create({ name: "a", imageName: "./nothing" }), "INVALID_INPUT", /not a directory/);
    await refused(create({ name: "a", imageName: "./file" }), "INVALID_INPUT", /not a directory/);
  });

  it.each(["handler.py", "./handler.py", "hello/handler.ts", "/srv/handler.mjs", "file:handler.js"])(
    "is refused with the handler's file %s as its image",
    async (imageName) => {
      await refused(create({ name: "a", imageName }), "INVALID_INPUT", /name the directory that holds it/);
    },
  );

  it("is refused for a directory without a handler, unless it has a start command", async () => {
    await scene.close();
    scene = await Scene.open({ here: { hasHandler: (directory) => handlerCommand(directory) !== undefined } });
    const words = /no handler\.ts, .* in '.*' \(imageName\): put one there, or say in dockerStartCmd/;
    await refused(create({ name: "a", imageName: "." }), "INVALID_INPUT", words);
    const told = await create({ name: "told", imageName: ".", dockerStartCmd: ["python3", "main.py"] });
    const untold = updateTemplate(scene.parts, scene.admin, told, { dockerStartCmd: [] });
    await refused(untold, "INVALID_INPUT", words);
    writeFileSync(join(scene.directory, "handler.py"), "");
    expect((await create({ name: "a", imageName: "." })).settings.imageName).toBe(scene.directory);
  });

  it("is refused without a name, with a name that is taken, and with an invalid env", async () => {
    await create({ name: "taken", imageName: image });
    await refused(create({ name: "", imageName: image }), "INVALID_INPUT", /'name'/);
    await refused(create({ name: "taken", imageName: image }), "IN_USE", /'taken'/);
    await refused(create({ name: "a", imageName: image, env: { "A=B": "1" } }), "INVALID_INPUT", /env/);
  });

  it.each(["python:3.12/get?", "a/../../containers/x", "x#f", "a b", "a\r\nX: y", "--privileged", "Team/Echo"])(
    "is refused with %j for an image, when it is made and when it is changed",
    async (imageName) => {
      await refused(create({ name: "a", imageName }), "INVALID_INPUT", /no name of a container image.*imageName/);
      const made = await create({ name: "a", imageName: image });
      await refused(updateTemplate(scene.parts, scene.admin, made, { imageName }), "INVALID_INPUT", /imageName/);
      expect(scene.parts.registry.template(made.id)?.settings.imageName).toBe(image);
    },
  );

  it.each<[TemplateInput, RegExp]>([
    [{ dockerStartCmd: ["serve", "a\0b"] }, /'dockerStartCmd' contains a control character other than tabs/],
    [{ dockerEntrypoint: ["\x1b[2J"] }, /'dockerEntrypoint' contains/],
    [{ name: "a\nb" }, /'name' contains a control character/],
    [{ imageName: "./a\0b" }, /'imageName' contains/],
    [{ readme: "\x07" }, /'readme' contains/],
    ...["/", "relative", "/proc", "/sys/fs", "/dev/shm", "/a/../proc", "/a\0b"].map(
      (volumeMountPath) =>
        [{ volumeMountPath }, /in volumeMountPath cannot hold a volume: write an absolute path/] satisfies [
          object,
          RegExp,
        ],
    ),
  ])("is refused with %j, when it is made and when it is changed", async (input, words) => {
    await refused(create({ name: "a", imageName: image, ...input }), "INVALID_INPUT", words);
    const made = await create({ name: "a", imageName: image });
    await refused(updateTemplate(scene.parts, scene.admin, made, input), "INVALID_INPUT", words);
    expect(scene.parts.registry.template(made.id)?.settings).toEqual(made.settings);
  });

  it("may have several lines in its command and readme, and keeps a path saved before paths were checked", async () => {
    const dockerStartCmd = ["sh", "-c", "echo a\n\techo b\r\n"];
    const made = await create({ name: "a", imageName: image, dockerStartCmd, readme: "# A\n\ntext" });
    expect(made.settings).toMatchObject({ dockerStartCmd, readme: "# A\n\ntext" });
    const older = await scene.parts.registry.saveTemplate(made, { ...made.settings, volumeMountPath: "old" });
    const renamed = await updateTemplate(scene.parts, scene.admin, older, { name: "b", volumeMountPath: "old" });
    expect(renamed.settings).toMatchObject({ name: "b", volumeMountPath: "old" });
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

  it("may not use a directory if local processes are turned off", async () => {
    await scene.close();
    scene = await Scene.open({ here: { localProcesses: false } });
    await refused(create({ name: "a", imageName: "." }), "INVALID_INPUT", /MILLRACE_LOCAL_PROCESSES/);
  });
});

describe("A change of a template", () => {
  it("changes only the sent fields, and clears by null", async () => {
    const made = await create({ name: "a", imageName: image, env: { A: "1" }, ports: ["80/http"], readme: "hello" });
    const renamed = await updateTemplate(scene.parts, scene.admin, made, { name: "b" });
    expect(renamed.settings).toEqual({ ...made.settings, name: "b" });
    for (const port of ["80", "0/tcp", "65536/tcp", "80/udp", "80/http ", "a/tcp"]) {
      const wrong = updateTemplate(scene.parts, scene.admin, renamed, { ports: ["22/tcp", port] });
      await refused(wrong, "INVALID_INPUT", /in ports is not a port: write number\/http or number\/tcp/);
    }
    const cleared = await updateTemplate(scene.parts, scene.admin, renamed, { env: null, ports: null, readme: null });
    expect(cleared.settings).toEqual({ ...templateDefaults, name: "b", imageName: image });
  });

  it.each([{ name: null }, { name: "" }, { imageName: null }, { imageName: "" }])(
    "never removes its name or image: %j is refused, or changes nothing",
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

  it("that changes the workers' definition releases the endpoints that use it", async () => {
    const template = await scene.template();
    const [user, other] = [await scene.endpoint({ templateId: template.id }), await scene.endpoint()];
    const [worker, otherWorker] = [await scene.worker(user), await scene.worker(other)];
    await updateTemplate(scene.parts, scene.admin, template, { env: { A: "1" } });
    expect([scene.now(user).version, scene.now(other).version]).toEqual([2, 1]);
    expect([worker.row.wanted, otherWorker.row.wanted]).toEqual(["closed", "running"]);
  });

  it("releases them even if it is repeated after a server died between the two steps", async () => {
    const template = await scene.template();
    const user = await scene.endpoint({ templateId: template.id });
    await scene.stores.templates.save(template.no, { ...template.settings, env: { A: "1" } });
    scene = await scene.restart();
    const again = scene.parts.registry.template(template.id)!;
    await updateTemplate(scene.parts, scene.admin, again, { env: { A: "1" } });
    expect((await showReleases(scene.parts, scene.admin, scene.now(user)))[0]).toMatchObject({ env: { A: "1" } });
  });

  it("of its name or readme releases nothing", async () => {
    const template = await scene.template();
    const user = await scene.endpoint({ templateId: template.id });
    const worker = await scene.worker(user);
    await updateTemplate(scene.parts, scene.admin, template, { name: "renamed", readme: "new", isPublic: true });
    expect([scene.now(user).version, worker.row.wanted]).toEqual([1, "running"]);
  });
});

it("A change of a template with many endpoints lets other owners' changes through", async () => {
  const template = await scene.template();
  for (let n = 0; n < 2 * limits.releasedAtOnce; n++) await scene.endpoint({ templateId: template.id });
  const { caller: other } = await scene.stranger();
  const changed = updateTemplate(scene.parts, scene.admin, template, { env: { A: "1" } });
  const versions = () => scene.parts.registry.endpoints().filter(({ version }) => version > 1).length;
  await createTemplate(scene.parts, other, { name: "of another", imageName: image });
  expect(versions()).toBeLessThan(2 * limits.releasedAtOnce);
  await changed;
  expect(versions()).toBe(2 * limits.releasedAtOnce);
});

describe("Deleting a template", () => {
  it("is refused while an endpoint uses it", async () => {
    const template = await scene.template();
    const user = await scene.endpoint({ templateId: template.id });
    await refused(deleteTemplate(scene.parts, scene.admin, template), "IN_USE", new RegExp(user.id));
    await deleteEndpoint(scene.parts, scene.admin, user, { setToZero: true });
    await deleteTemplate(scene.parts, scene.admin, template);
    await refused(() => ownTemplate(scene.parts, scene.admin, template.id), "NOT_FOUND");
  });
});

it("Another user's template is refused like an unknown one, public or not", async () => {
  const { caller } = await scene.stranger();
  const template = await create({ name: "a", imageName: image, isPublic: true });
  await refused(() => ownTemplate(scene.parts, caller, template.id), "NOT_FOUND");
  await refused(() => ownTemplate(scene.parts, caller, "nothing"), "NOT_FOUND");
});

describe("A template whose image is present and cannot run", () => {
  const complaint = "the image 'a:1' names no command: set dockerStartCmd in the template";
  const asked: string[] = [];
  beforeEach(async () => {
    asked.length = 0;
    await scene.close();
    const imageComplaint = async (name: string, hasCommand: boolean) => {
      asked.push(name);
      return name === "a:1" && !hasCommand ? complaint : undefined;
    };
    scene = await Scene.open({ here: { imageComplaint } });
  });

  it("is refused with the engine's reason, when it is made and when it is changed", async () => {
    await refused(create({ name: "a", imageName: "a:1" }), "INVALID_INPUT", /^The image 'a:1' names no command: .*\.$/);
    const made = await create({ name: "a", imageName: "a:1", dockerStartCmd: ["serve"] });
    await refused(updateTemplate(scene.parts, scene.admin, made, { dockerStartCmd: null }), "INVALID_INPUT");
    const other = await create({ name: "b", imageName: "b:1" });
    await refused(updateTemplate(scene.parts, scene.admin, other, { imageName: "a:1" }), "INVALID_INPUT");
    expect(scene.parts.registry.template(other.id)?.settings.imageName).toBe("b:1");
  });

  it("may be changed in fields that do not concern its image, and may be given a directory", async () => {
    const made = await create({ name: "a", imageName: "a:1", dockerEntrypoint: ["/serve"] });
    await create({ name: "directory", imageName: scene.directory });
    expect(asked).toEqual(["a:1"]);
    await updateTemplate(scene.parts, scene.admin, made, { readme: "more" });
    expect(asked).toHaveLength(1);
  });

  it("makes no endpoint", async () => {
    const made = await create({ name: "a", imageName: "a:1", dockerStartCmd: ["serve"] });
    const spoilt = { ...made.settings, dockerStartCmd: [] };
    await scene.parts.registry.saveTemplate(made, spoilt); // the image was rebuilt meanwhile, without a command
    await refused(scene.endpoint({ templateId: made.id }), "INVALID_INPUT", /names no command/);
    expect(scene.parts.registry.endpoints()).toEqual([]);
  });

  it("is reported only to its owner", async () => {
    const made = await create({ name: "a", imageName: "a:1", dockerStartCmd: ["serve"] });
    asked.length = 0;
    const { caller } = await scene.stranger();
    await refused(scene.endpoint({ templateId: made.id }, caller), "INVALID_INPUT", /no template/);
    expect(asked).toEqual([]);
  });

  it("is accepted for another host, if there are any", async () => {
    scene.parts.registry.hosts = [1, 2].map((no) => ({ ...plainHost, no, seenAt: scene.clock.now() }));
    await create({ name: "a", imageName: "a:1" });
    expect(asked).toEqual([]);
  });
});

describe("The volume mount path of a template", () => {
  const isGiven = async (input: TemplateInput) =>
    (await create({ name: "a", imageName: image, ...input })).settings.isMountPathGiven;

  it.each([
    [{}, undefined],
    [{ volumeMountPath: "" }, undefined],
    [{ volumeMountPath: null }, undefined],
    [{ volumeMountPath: "/models" }, true],
    [{ volumeMountPath: "/workspace" }, true],
  ])("is set by %j: %s", async (input, given) => {
    expect(await isGiven(input)).toBe(given);
  });

  it("is not set by sending back the value shown, and is cleared by null", async () => {
    const made = await create({ name: "a", imageName: image });
    const change = async (volumeMountPath: string | null) =>
      (await updateTemplate(scene.parts, scene.admin, made, { volumeMountPath })).settings.isMountPathGiven;
    expect(await change("/workspace")).toBeUndefined();
    expect(await change("/models")).toBe(true);
    expect(await change("/models")).toBe(true);
    expect(await change(null)).toBeUndefined();
  });
});

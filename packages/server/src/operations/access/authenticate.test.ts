import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { admitToManagement, authenticate } from "./authenticate.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

describe("A key", () => {
  it.each(["Bearer KEY", "bearer KEY", "Bearer   KEY", "KEY", " KEY "])("is taken as '%s'", async (header) => {
    expect(await authenticate(scene.parts, header.replace("KEY", scene.key))).toEqual(scene.admin);
  });

  it.each([undefined, "", "Bearer", "Bearer ", "mr_unknown", "Basic abc"])("is not '%s'", async (header) => {
    await refused(() => authenticate(scene.parts, header), "UNAUTHORIZED");
  });

  it("is not its own hash", async () => {
    await refused(() => authenticate(scene.parts, scene.admin.hash), "UNAUTHORIZED");
  });

  it("that may only read is admitted to reads, and refused for changes", async () => {
    await scene.addKey("mr_read", scene.admin.ownerNo, { kind: "readOnly" });
    expect(await admitToManagement(scene.parts, "mr_read", false)).toMatchObject({ ownerNo: scene.admin.ownerNo });
    await refused(() => admitToManagement(scene.parts, "mr_read", true), "UNAUTHORIZED", /may not change/);
  });

  it("of named endpoints is refused for changes of resources", async () => {
    await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access: { a: "run" } });
    await refused(() => admitToManagement(scene.parts, "mr_bound", true), "UNAUTHORIZED", /may not change/);
  });

  it("is refused while the server stops", async () => {
    scene.draining.abort();
    await refused(() => admitToManagement(scene.parts, scene.key, false), "UNAVAILABLE", /stopping/);
  });
});

import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { Scene } from "../../testing/scene-fixture.js";
import { SignInLink } from "./sign-in-link.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

it("A link gives its key once, to whoever has its token", () => {
  const link = new SignInLink(scene.parts, "mr_key");
  expect(link.token.length).toBeGreaterThanOrEqual(24);
  for (const other of ["", "x", `${link.token}x`, link.token.slice(1)]) expect(link.redeem(other)).toBeUndefined();
  expect(link.redeem(link.token)).toBe("mr_key");
  expect(link.redeem(link.token)).toBeUndefined();
});

it("A link ends after an hour", async () => {
  const link = new SignInLink(scene.parts, "mr_key");
  await scene.advance(limits.signInLinkMs - 1);
  const other = new SignInLink(scene.parts, "mr_key");
  await scene.advance(1);
  expect([link.redeem(link.token), other.redeem(other.token)]).toEqual([undefined, "mr_key"]);
});

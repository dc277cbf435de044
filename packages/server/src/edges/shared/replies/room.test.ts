import { expect, it } from "vitest";
import { PlainSignal } from "../../../clock.js";
import { Shares } from "../../../lines/shares.js";
import { Scene } from "../../../testing/scene-fixture.js";
import { Room } from "./room.js";

const settled = () => new Promise((resolve) => setImmediate(resolve));

it("A request whose reply was sent while it waited for memory is given none, and holds none", async () => {
  const scene = await Scene.open();
  const { parts } = scene;
  const shares = new Shares({ clock: parts.clock, bytesMax: 100, ownerBytesMax: 100, waitMs: 60_000 });
  const full = await shares.ask(1, 100, new PlainSignal());
  const rooms = [1, 2].map(() => new Room({ ...parts, shares }, 2, new PlainSignal()));
  const asked = rooms.map((room) =>
    room.take(50).then(
      () => "lent",
      () => "refused",
    ),
  );
  await settled();
  rooms[0]?.close(); // it was refused for another reason
  full?.release();
  expect(await Promise.all(asked)).toEqual(["refused", "lent"]);
  expect(shares.heldBytes).toBe(50);
  // nor does it get any when it asks only after that
  await expect(rooms[0]?.take(50)).rejects.toThrow();
  rooms[1]?.close();
  expect(shares.heldBytes).toBe(0);
  await scene.close();
});

it("Work of a request whose client has gone is not begun", async () => {
  const scene = await Scene.open();
  const room = new Room(scene.parts, 1, new PlainSignal());
  expect(await room.work(() => "done")).toBe("done");
  room.close();
  await expect(room.work(() => expect.fail("it was begun"))).rejects.toThrow(/memory|busy|again/i);
  await scene.close();
});

import { expect, it } from "vitest";
import { startPostgres } from "../../../../../scripts/postgres.mjs";
import { makeDatabase, openEmptied } from "../contracts/postgres-fixture.js";
import { Scene } from "../contracts/scene.js";

it("acknowledged writes survive a crash, even if the database by default answers before it writes", async () => {
  const server = await startPostgres({ settings: { synchronous_commit: "off", wal_writer_delay: "10s" } });
  try {
    const url = await makeDatabase(server, "durability");
    const scene = await Scene.open(() => openEmptied(url));
    const ids = await scene.submitMany(5);
    await server.stop("SIGQUIT");
    await server.start();
    for (const id of ids) expect(await scene.job(id)).toMatchObject({ status: "IN_QUEUE" });
    await scene.end();
  } finally {
    await server.end();
  }
});

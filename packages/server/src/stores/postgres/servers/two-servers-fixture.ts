import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import type { NewJob, Stores } from "../../../store/index.js";
import { makeDatabase, openAs, openEmptied } from "../../contracts/postgres-fixture.js";
import { Scene } from "../../contracts/scene.js";

export let url: string;
export let scene: Scene;
/** Two servers on one database. */
export let both: readonly [Stores, Stores];
export let workers: number[];

/** Opens the two servers, with four workers, before each test of a file. */
export function openTwoServers(): void {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres({ settings: { fsync: "off", deadlock_timeout: "100ms" } });
    url = await makeDatabase(server, "two");
  });
  afterAll(() => server.end());
  beforeEach(async () => {
    scene = await Scene.open(() => openEmptied(url));
    both = [scene.stores, await openAs("other host", url)];
    workers = await Promise.all([1, 2, 3, 4].map((n) => scene.worker(`worker0000000${n}`)));
  });
  afterEach(async () => {
    await both[1].close();
    await scene.end();
  });
}

export const times = (count: number) => Array.from({ length: count }, (_, n) => n);
export const on = (n: number): Stores => both[n % 2]!;
export const submit = (n: number, more: Partial<NewJob> = {}) => on(n).jobs.submit(scene.newJob(more));

/** Checks that the counts match the rows, on both servers. */
export async function countsHold(): Promise<void> {
  const { endpointNo } = scene;
  const tally = await both[0].tallies.tally(endpointNo);
  expect(await both[0].tallies.recount(endpointNo)).toEqual(tally);
  expect(await both[1].tallies.tally(endpointNo)).toEqual(tally);
}

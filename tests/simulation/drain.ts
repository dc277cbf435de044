import { isFinal } from "../../packages/server/src/domain/jobs/job.js";
import { Refusal } from "../../packages/server/src/errors.js";
import { ownEndpoint, updateEndpoint } from "../../packages/server/src/operations/endpoints/save-endpoint.js";
import { isBad, isOpen, type KnownEndpoint, workingVersion } from "./fleet.js";
import { Broken, type Server } from "./server.js";
import type { EndpointChange } from "./steps.js";
import { Violated } from "./violation.js";
import type { World } from "./world.js";

/** Changes an endpoint; an invalid change may be refused. */
export async function manage(world: World, act: (server: Server) => Promise<unknown>): Promise<void> {
  try {
    await world.ask(act);
  } catch (error) {
    if (error instanceof Broken || error instanceof Refusal) return;
    world.broken("no failure", error instanceof Error ? `${error.stack}` : String(error));
  }
}

/** Saves an endpoint, as its owner would. */
export const save = (world: World, id: string, input: EndpointChange) =>
  manage(world, ({ parts, admin }) => updateEndpoint(parts, admin, ownEndpoint(parts, admin, id), input));

/** Jobs that have not ended. */
export const unfinished = ({ ledger }: World) =>
  [...ledger.jobs.values()].filter((job) => !job.gone && !job.vanished && !isFinal(job.status));

/** From now on nothing fails: everything must end, and then come to rest. */
export async function drain(world: World): Promise<void> {
  world.note("from now on nothing fails");
  world.isCalm = true;
  world.server?.liveOn();
  await until(world, "the server listens again", 600, () => world.isUp);
  for (const double of world.host.alive) double.thaw();
  world.machine.heal();
  if (world.machine.isTight) {
    // Let the scarce workers run as many jobs as they can.
    for (const { id } of standing(world)) void save(world, id, { workersMin: 0, workersMax: 2, idleTimeout: 1 });
    await world.pass(60_000);
    world.machine.grow();
  }
  // A lowPriority job waits for a worker that another job started: keep one until all jobs have ended.
  for (const { id } of standing(world)) void save(world, id, { workersMin: 1, workersMax: 3, idleTimeout: 1 });
  await until(
    world,
    "every job ends",
    14_400,
    () => mend(world, false) && unfinished(world).length === 0,
    () =>
      unfinished(world)
        .map(({ id }) => id)
        .join(),
  );
  await until(world, "releases are through, or held", 600, () =>
    standing(world).every((each) => isSettled(world, each)),
  );
  mend(world, true);
  await until(world, "releases are through", 600, () => standing(world).every((each) => isThrough(world, each)));
  for (const { id } of standing(world)) void save(world, id, { workersMin: 0 });
  await until(world, "no client waits any more", 600, () => world.clients.waiting.size === 0);
  await until(
    world,
    "idle workers end",
    900,
    () => world.host.alive.length === 0,
    () => world.host.alive.map(({ id }) => id).join(),
  );
  await world.pass(60_000);
  await world.checkAll(true);
  await world.pass(1_800_000);
  for (const job of world.ledger.jobs.values()) if (!job.gone) world.broken("retention", `${job.id} is kept forever`);
  await world.settle();
}

const standing = ({ fleet }: World) => [...fleet.endpoints.values()].filter(({ isDeleted }) => !isDeleted);

/** Repairs versions that cannot come up: those whose jobs no other worker can run, or all of them. */
function mend(world: World, isAll: boolean): true {
  for (const endpoint of standing(world))
    if (isBad(endpoint) && (isAll || endpoint.provenVersion === 0))
      void save(world, endpoint.id, { env: { VERSION: "mended" } });
  return true;
}

/**
 * Whether all workers are of the working version: the present one, or the previous one if the present one never comes
 * up.
 */
const isSettled = ({ fleet }: World, endpoint: KnownEndpoint): boolean => {
  const rows = fleet.workersOf(endpoint.no);
  const { version, provenVersion } = endpoint;
  const isKnown = provenVersion === version || fleet.isHeld(endpoint);
  return isKnown && rows.some(isOpen) && rows.every((row) => row.version === workingVersion(endpoint));
};

const isThrough = (world: World, endpoint: KnownEndpoint): boolean =>
  isSettled(world, endpoint) && !world.fleet.isHeld(endpoint);

async function until(
  world: World,
  what: string,
  seconds: number,
  isSo: () => boolean,
  which = () => "",
): Promise<void> {
  for (let passed = 0; !isSo(); passed += 5) {
    if (passed > seconds) {
      world.broken("everything ends", `${what}: not within ${seconds} s ${which()}`);
      throw new Violated();
    }
    await world.pass(5_000);
  }
}

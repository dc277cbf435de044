import { localBell } from "./bells/local.js";
import { systemClock } from "./clock.js";
import type { Config } from "./config.js";
import { type DataDirectory, openDataDirectory, randomHex, StartError } from "./data-directory.js";
import { workerState } from "./domain/worker.js";
import type { Emit } from "./events.js";
import { graphqlRoutes } from "./graphql/routes.js";
import { type Door, openDoor } from "./http/door.js";
import { buildHttp } from "./http/server.js";
import { type Ids, systemIds } from "./ids.js";
import { limits } from "./limits.js";
import { TakeLine } from "./lines/take-line.js";
import { deliverWebhooksLoop } from "./loops/deliver-webhooks.js";
import { expireJobsLoop, timeOutJobsLoop } from "./loops/expire-jobs.js";
import { type Loop, runLoop } from "./loops/loop.js";
import { scaleLoop } from "./loops/scale.js";
import { tendWorkersLoop } from "./loops/tend-workers.js";
import { watchWorkersLoop } from "./loops/watch-workers.js";
import type { Parts } from "./operations/needs.js";
import { clearEndpoint } from "./operations/save-endpoint.js";
import { settleOrphans, stopWorker } from "./operations/worker-life.js";
import type { Provider } from "./provider.js";
import { processProvider } from "./providers/process/process-provider.js";
import { Rates } from "./rates.js";
import { Registry } from "./registry.js";
import type { Sender } from "./sender.js";
import { guardedSender } from "./senders/guarded.js";
import type { Stores } from "./store.js";
import { lockDirectory } from "./stores/sqlite/lock.js";
import { openSqlite } from "./stores/sqlite/open.js";
import { eventLog } from "./telemetry/log.js";
import { metrics } from "./telemetry/metrics.js";
import type { Vault } from "./vault.js";
import { localVault } from "./vaults/local.js";

/** What tests and other modes bring of their own. */
export interface AssembleParts {
  readonly clock?: ReturnType<typeof systemClock>;
  readonly ids?: Ids;
  readonly stores?: Stores;
  readonly provider?: Provider;
  readonly sender?: Sender;
  /** A socket that listens already. */
  readonly door?: Door;
  /** The disk has failed: the process must end. */
  readonly onFatal?: (error: Error) => void;
}

/** A whole service, running. */
export interface Millrace {
  readonly url: string;
  /** The bootstrap key, where this start has made it. */
  readonly newKey: string | undefined;
  /** Whether the data directory was empty. */
  readonly isFirstStart: boolean;
  readonly key: string;
  /** Everything is stopped in order, as at SIGTERM: workers have their grace, what they leave is given back. */
  stop(reason: string): Promise<void>;
}

/** Connects everything: the only file that knows every other. Throws a {@link StartError} that its operator can act on. */
export async function assemble(config: Config, given: AssembleParts = {}): Promise<Millrace> {
  const directory = openDataDirectory(config.dataDir);
  const lock = lockDirectory(directory.lock);
  if (!lock) {
    throw new StartError(
      `Another server uses the data directory ${config.dataDir}: stop it, or set MILLRACE_DATA_DIR to another one.`,
    );
  }
  const door = given.door ?? (await openDoor(config.host, config.port));
  const url = `http://${bracketed(config.host)}:${door.port}`;
  const clock = given.clock ?? systemClock();
  const ids = given.ids ?? systemIds;
  const listeners: Emit[] = [eventLog(config.logLevel)];
  const emit: Emit = (event) => {
    for (const listener of listeners) listener(event);
  };
  const stores = given.stores ?? openStores(directory, given.onFatal);
  const vault = localVault(Buffer.from(config.sealKey ?? directory.secret("seal-key", () => randomHex(32)), "hex"));
  const { key, newKey } = await ensureAdmin(config, directory, stores, vault, ids);
  const registry = new Registry(stores);
  await registry.load(clock.now());
  clock.onGap(() => {
    // nobody was heard because we did not listen
    for (const worker of registry.liveWorkers()) worker.seenAt = worker.polledAt = clock.now();
  });

  const draining = new AbortController();
  const bell = localBell();
  const { line, rings } = takeLines(stores, registry, bell, clock, emit);
  const parts: Parts = {
    ...stores,
    clock,
    ids,
    bell,
    registry,
    vault,
    emit,
    line,
    draining: draining.signal,
    place: {
      hostNo: await stores.hosts.ensure(
        directory.secret("host", () => ids.resource()),
        clock.now(),
      ),
      location: config.location,
      gpuTypes: [],
      localProcesses: config.localProcesses,
      volumesDir: directory.volumes,
      workingDir: process.cwd(),
      stopGraceMs: config.stopGraceMs,
    },
  };
  const meter = metrics({
    endpoints: () => registry.endpoints(),
    tally: stores.tallies.tally,
    workers: (no) => workerCounts(parts, no),
  });
  listeners.push(meter.emit);

  const provider =
    given.provider ?? processProvider({ dataDir: config.dataDir, logsDir: directory.logs, awayMs: config.awayMs });
  const sender = given.sender ?? guardedSender({ allowPrivate: config.webhookPrivate });
  const app = await buildHttp(
    {
      ...parts,
      rates: config.rateLimits ? new Rates() : undefined,
      requestsPerWorker: config.requestsPerWorker,
      metrics: meter.page,
      isReady: () => stores.ping().then(() => true),
      graphql: (scope, setToZero) => graphqlRoutes(scope, { ...parts, setToZero }),
    },
    door.server,
    door.take,
  );

  const workerUrl = () => config.workerUrl ?? `http://${bracketed(reachable(config.host))}:${door.port}`;
  const deciding = new AbortController();
  const serving = new AbortController();
  const start = (loop: Loop, signal: AbortSignal) => runLoop(loop, parts, signal);
  const deciders = [
    start(scaleLoop(parts), deciding.signal),
    start(watchWorkersLoop(parts), deciding.signal),
    start(deliverWebhooksLoop(parts, sender), deciding.signal),
  ];
  const servers = [
    start(
      tendWorkersLoop(parts, {
        provider,
        workerUrl,
        startTimeoutMs: config.startTimeoutMs,
        homesDir: directory.homes,
        env: process.env,
      }),
      serving.signal,
    ),
    start(expireJobsLoop(parts), serving.signal),
    start(timeOutJobsLoop(parts), serving.signal),
  ];
  await settleOrphans(parts, await stores.reader.orphaned(), true);
  for (const endpoint of registry.endpoints()) {
    if (endpoint.deletedAt !== undefined) {
      const message = "a deleted endpoint's jobs could not be cancelled";
      clearEndpoint(parts, endpoint.no).catch((error) => emit({ type: "server.warning", message, error }));
    }
  }
  emit({ type: "server.started", url });

  async function stop(reason: string): Promise<void> {
    emit({ type: "server.stopping", signal: reason });
    draining.abort();
    deciding.abort();
    await Promise.all(deciders);
    await stopWorkers(parts, Math.min(config.stopGraceMs, limits.stopGraceMsDefault));
    await provider.leave(0).catch(() => {});
    serving.abort();
    await Promise.all(servers);
    for (const off of rings.values()) off();
    await sender.close();
    await door.close();
    await app.close();
    await stores.close();
    clock.stop();
    lock?.release();
  }
  return { url, newKey, key, isFirstStart: directory.isNew, stop };
}

function openStores(directory: DataDirectory, onFatal: ((error: Error) => void) | undefined): Stores {
  try {
    return openSqlite({ path: directory.database, onFatal: onFatal ?? (() => {}) });
  } catch (error) {
    throw new StartError(error instanceof Error ? error.message : String(error));
  }
}

/** The admin and the bootstrap key: given by the environment, kept from before, or made now. */
async function ensureAdmin(config: Config, directory: DataDirectory, stores: Stores, vault: Vault, ids: Ids) {
  let [admin] = await stores.keys.users();
  if (!admin) {
    const secret = `whsec_${Buffer.from(ids.secret(24), "base64url").toString("base64")}`;
    admin = await stores.keys.createUser({
      id: `user_${ids.resource()}`,
      isAdmin: true,
      webhookSecret: vault.seal(secret),
    });
  }
  try {
    vault.open(admin.webhookSecret);
  } catch {
    throw new StartError(
      "MILLRACE_SEAL_KEY is not the key that sealed this data directory's secrets: set the one it was started with.",
    );
  }
  let newKey: string | undefined;
  if (config.apiKey !== undefined) directory.keep("api-key", config.apiKey);
  const key = directory.secret("api-key", () => {
    newKey = `mr_${ids.secret(32)}`;
    return newKey;
  });
  const hash = vault.hash(key);
  const known = (await stores.keys.keys()).some((each) => each.hash === hash);
  if (!known) {
    const scope = { kind: "everything" } as const;
    await stores.keys.add({ hash, ownerNo: admin.no, scope, prefix: key.slice(0, 6), isBootstrap: true });
  }
  return { key, newKey };
}

/** A line of takers for each endpoint, rung by its queue. */
function takeLines(stores: Stores, registry: Registry, bell: Parts["bell"], clock: Parts["clock"], emit: Emit) {
  const lines = new Map<number, TakeLine>();
  const rings = new Map<number, () => void>();
  const line = (endpointNo: number): TakeLine => {
    let found = lines.get(endpointNo);
    if (found) return found;
    found = new TakeLine({
      take: (asks) => stores.jobs.take(endpointNo, asks, clock.now()),
      busyAt: (workerNo) => registry.workerByNo(workerNo)?.busyAt ?? 0,
      onError: (error) => emit({ type: "server.warning", message: "jobs could not be taken just now", error }),
    });
    lines.set(endpointNo, found);
    const ringing = found;
    rings.set(
      endpointNo,
      bell.on(`queue:${endpointNo}`, () => ringing.ring()),
    );
    return found;
  };
  return { line, rings };
}

/** Asks every worker to stop, and waits until all have ended; the last are killed when the grace is over. */
async function stopWorkers(parts: Parts, graceMs: number): Promise<void> {
  for (const worker of parts.registry.liveWorkers()) await stopWorker(parts, worker, "the server stops", graceMs);
  const deadline = parts.clock.now() + graceMs + limits.netMs;
  while (parts.registry.liveWorkers().length > 0 && parts.clock.now() < deadline) {
    await parts.clock.sleep(limits.loopGapMs);
  }
}

async function workerCounts(parts: Parts, endpointNo: number): Promise<ReadonlyMap<string, number>> {
  const held = await parts.tallies.holdings(endpointNo);
  const counts = new Map<string, number>();
  for (const { row } of parts.registry.workersOf(endpointNo)) {
    const state = workerState(row, held.get(row.no) ?? 0);
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return counts;
}

const bracketed = (host: string) => (host.includes(":") ? `[${host}]` : host);
const reachable = (host: string) => (host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host);

export { StartError } from "./data-directory.js";

import { setMaxListeners } from "node:events";
import { topics } from "./bell.js";
import { localBell } from "./bells/local.js";
import { HostTaken, postgresBell } from "./bells/postgres.js";
import { type Clock, PlainSignal, type SystemClock, systemClock } from "./clock.js";
import type { Config } from "./config.js";
import { type DataDirectory, openDataDirectory, randomHex, StartError } from "./data-directory.js";
import { isContainer, workerState } from "./domain/worker.js";
import type { Emit } from "./events.js";
import { graphqlRoutes } from "./graphql/routes.js";
import { type Door, openDoor } from "./http/door.js";
import { ping } from "./http/gateway/dialler.js";
import { openGateway } from "./http/gateway/gateway.js";
import { buildHttp } from "./http/server.js";
import { workersDoor } from "./http/workers/door.js";
import { type Ids, systemIds } from "./ids.js";
import { machineInventory } from "./inventories/machine.js";
import { freeMemoryShare } from "./inventories/processors.js";
import type { Inventory } from "./inventory.js";
import { limits } from "./limits.js";
import { Gate } from "./lines/gate.js";
import { gateTallies } from "./lines/gate-tallies.js";
import { TakeLine } from "./lines/take-line.js";
import { deliverWebhooksLoop } from "./loops/deliver-webhooks.js";
import { expireJobsLoop, timeOutJobsLoop } from "./loops/expire-jobs.js";
import { keepTimeLoop } from "./loops/keep-time.js";
import { Leases, runOwned } from "./loops/leases.js";
import { type Loop, runLoop } from "./loops/loop.js";
import { VolumeMeasuring } from "./loops/measure-volumes.js";
import { pollHealthLoop } from "./loops/poll-health.js";
import { pruneLogsLoop } from "./loops/prune-logs.js";
import { scaleLoop } from "./loops/scale.js";
import { aheadOf, shareStateLoop } from "./loops/share-state.js";
import { StockTaking } from "./loops/take-stock.js";
import { tendWorkersLoop } from "./loops/tend-workers.js";
import { watchWorkersLoop } from "./loops/watch-workers.js";
import type { Parts } from "./operations/needs.js";
import { clearEndpoint } from "./operations/save-endpoint.js";
import { settleOrphans, stopWorker } from "./operations/worker-life.js";
import type { Provider } from "./provider.js";
import { byImage } from "./providers/by-image.js";
import { dockerProvider } from "./providers/docker/docker-provider.js";
import { engineAddress, openEngine } from "./providers/docker/engine.js";
import { engineFacts } from "./providers/docker/facts.js";
import { gatewayOf } from "./providers/docker/gateway.js";
import { pruneLogs } from "./providers/log-files/pruning.js";
import { noContainers } from "./providers/no-containers.js";
import { processProvider } from "./providers/process/process-provider.js";
import { Grants, Rates } from "./rates.js";
import { Registry } from "./registry.js";
import type { Sender } from "./sender.js";
import { guardedSender } from "./senders/guarded.js";
import type { Stores } from "./store.js";
import { isUnreachable, openPostgres } from "./stores/postgres/open.js";
import { lockDirectory } from "./stores/sqlite/lock.js";
import { openSqlite } from "./stores/sqlite/open.js";
import { eventLog } from "./telemetry/log.js";
import { metrics } from "./telemetry/metrics.js";
import type { Vault } from "./vault.js";
import { localVault } from "./vaults/local.js";

/** What tests and other modes bring of their own. */
export interface AssembleParts {
  readonly clock?: Clock & Partial<SystemClock>;
  readonly ids?: Ids;
  readonly stores?: Stores;
  readonly provider?: Provider;
  readonly sender?: Sender;
  readonly inventory?: Inventory;
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
  /** Undefined where another server made it. */
  readonly key: string | undefined;
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
  // servers that share a database follow its clock
  const keepsTime = config.databaseUrl === undefined;
  const clock = given.clock ?? systemClock(keepsTime ? directory.read("clock") : undefined);
  const ids = given.ids ?? systemIds;
  const listeners: Emit[] = [eventLog(config.logLevel)];
  const emit: Emit = (event) => {
    for (const listener of listeners) listener(event);
  };
  const inventory = given.inventory ?? machineInventory(config.gpus, process.env);
  const stock = new StockTaking({ emit }, inventory, config);
  const firstLook = stock.look(); // a driver that sleeps takes seconds to wake
  const hostId = directory.secret("host", () => ids.resource());
  /** What waits for the bell to be there. */
  const rings = { onBack: () => {}, onChange: () => {} };
  const stores = given.stores ?? (await openStores(config, directory, given, { hostId, clock, emit, rings }));
  const { shared } = stores;
  const vault = localVault(Buffer.from(config.sealKey ?? directory.secret("seal-key", () => randomHex(32)), "hex"));
  const admin = () => ensureAdmin(config, directory, stores, vault, ids);
  const { key, newKey } = await (shared ? shared.exclusively(admin) : admin());
  const registry = new Registry(stores, { onChange: () => rings.onChange(), now: clock.now });
  await registry.load(clock.now());
  clock.onGap(() => registry.hearAll(clock.now())); // nobody was heard because we did not listen

  const draining = new PlainSignal();
  const hostNo = await stores.hosts.ensure(hostId, clock.now());
  const sideDoor = workersDoor(config.host, door);
  // the results of containers that outlived us are not refused, while it takes until they are found
  for (const { row } of config.workerUrl === undefined ? registry.liveWorkers() : []) {
    const url = row.hostNo === hostNo && isContainer(row.handle) ? row.workerUrl : undefined;
    if (url !== undefined) await sideDoor.open(new URL(url).hostname).catch(() => {});
  }
  const lines = new Map<number, TakeLine>();
  const bell =
    shared && config.databaseUrl !== undefined
      ? await postgresBell({
          url: config.databaseUrl,
          hostId,
          isAlone: () => !hasOthers(registry, hostNo, clock.now()),
          isServedHere: (topic) => (lines.get(Number(/^queue:(\d+)$/.exec(topic)?.[1]))?.standing ?? 0) > 0,
          refresh: () => registry.refresh(),
        }).catch((error: Error) => {
          if (error instanceof HostTaken) {
            throw new StartError(
              `Another server with the identity of ${config.dataDir} uses the database: stop it, or delete the file host in the copy.`,
            );
          }
          throw new StartError(`The database was lost while the service started (${error.message}): start it again.`);
        })
      : localBell();
  rings.onBack = () => bell.ringAll();
  rings.onChange = () => bell.ringElsewhere("registry");
  const gate = new Gate({
    clock,
    onDemand(endpointNo, isUrgent) {
      bell.ring(topics.demand(endpointNo));
      if (isUrgent && shared) bell.ring("hosts"); // the others are told how many wait
    },
    onSlots: ({ endpointNo, version }, slots) => registry.noteSlots(endpointNo, version, slots),
  });
  const isBalanced = (no: number) => registry.endpointByNo(no)?.settings.type === "LB";
  const tallies = gateTallies(stores.tallies, gate, isBalanced);
  await firstLook; // before it is known what there is nothing is asked for and given out
  const { engine, containers } = findContainers(config.containers, process.env, hostId, directory.logs, emit);
  const facts = engine && engineFacts(engine);
  const parts: Parts = {
    ...stores,
    tallies,
    gate,
    clock,
    ids,
    bell,
    registry,
    vault,
    emit,
    line: takeLines(lines, stores, registry, bell, clock, emit),
    draining,
    place: {
      hostNo,
      facts: () => stock.facts,
      localProcesses: config.localProcesses,
      volumesDir: directory.volumes,
      volumeUse: new Map(),
      workingDir: process.cwd(),
      stopGraceMs: config.stopGraceMs,
      freeMemoryShare,
      flashBootMs: config.flashBootMs,
      ...(facts ? { imageComplaint: facts.imageComplaint } : {}),
      ...(facts && config.dockerVolumes ? { removeEngineVolume: facts.removeEngineVolume } : {}),
    },
  };
  const meter = metrics({
    endpoints: () => registry.endpoints(),
    tally: tallies.tally,
    workers: (no) => workerCounts(parts, no),
  });
  listeners.push(meter.emit);

  const provider =
    given.provider ??
    byImage(processProvider({ dataDir: config.dataDir, logsDir: directory.logs, awayMs: config.awayMs }), containers);
  const sender = given.sender ?? guardedSender({ allowPrivate: config.webhookPrivate });
  const gateway = openGateway(parts, { domain: config.lbDomain, isProxyTrusted: config.trustProxy });
  const app = await buildHttp(
    {
      ...parts,
      gateway,
      rates: config.rateLimits ? new Rates() : undefined,
      grants: shared && new Grants(shared.grant, () => !hasOthers(registry, hostNo, clock.now())),
      requestsPerWorker: config.requestsPerWorker,
      metrics: meter.page,
      logs: (workerId, handle, query) => provider.logs(workerId, handle, query),
      isReady: () => stores.ping().then(() => true),
      graphql: (scope, setToZero) => graphqlRoutes(scope, { ...parts, setToZero }),
    },
    door.server,
    door.take,
  );

  const noteTime = () => {
    const bearing = keepsTime ? clock.bearing?.() : undefined;
    try {
      if (bearing !== undefined) directory.note("clock", bearing);
    } catch {
      // the one before tells the time as well
    }
  };
  const workerUrl = async (isContainer: boolean) => {
    if (config.workerUrl !== undefined) return config.workerUrl;
    if (!isContainer || !engine) return `http://${bracketed(reachable(config.host))}:${door.port}`;
    return `http://${bracketed(await sideDoor.open(await gatewayOf(engine)))}:${door.port}`;
  };
  const measuring = new VolumeMeasuring(parts);
  listeners.push(measuring.hear);
  const deciding = new AbortController();
  const serving = new AbortController();
  setMaxListeners(0, serving.signal); // one for each loop
  const leases = shared && new Leases(clock);
  const start = (loop: Loop, signal: AbortSignal) => runLoop(loop, parts, signal);
  const own = (make: () => Loop, signal: AbortSignal) => runOwned(make, leases, parts, signal);
  const sharing =
    shared &&
    leases &&
    start(
      shareStateLoop(parts, shared, leases, (ms) => clock.follow?.(ms)),
      serving.signal,
    );
  const deciders = [
    own(() => scaleLoop(parts), deciding.signal),
    own(() => deliverWebhooksLoop(parts, sender), deciding.signal),
  ];
  const servers = [
    start(
      tendWorkersLoop(parts, {
        provider,
        workerUrl,
        startTimeoutMs: config.startTimeoutMs,
        homesDir: directory.homes,
        hostAddress: shared ? hostAddress(config) : "127.0.0.1",
        env: process.env,
      }),
      serving.signal,
    ),
    // also while workers have their grace: one that falls silent then is lost like any other
    own(() => watchWorkersLoop(parts), serving.signal),
    own(() => expireJobsLoop(parts), serving.signal),
    own(() => timeOutJobsLoop(parts), serving.signal),
    start(keepTimeLoop(noteTime), serving.signal),
    start(pollHealthLoop(parts, { ping, forget: gateway.forget }), serving.signal),
    start(
      stock.loop(() => {
        bell.ring("demand");
        bell.ring("workers");
      }),
      serving.signal,
    ),
    start(measuring.loop(), serving.signal),
    start(
      pruneLogsLoop(parts, (fateOf) => pruneLogs(directory.logs, fateOf)),
      serving.signal,
    ),
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
    leases?.resign();
    bell.ring("hosts");
    await stopWorkers(parts, Math.min(config.stopGraceMs, limits.stopGraceMsDefault));
    await provider.leave(0).catch(() => {});
    serving.abort();
    await Promise.all([...servers, sharing]);
    await shared?.leave(hostNo, clock.now() - limits.hostSilenceMs).catch(() => {}); // the others notice in a few seconds anyway
    await sender.close();
    await sideDoor.close();
    await gateway.close();
    await door.close();
    await app.close();
    await bell.close();
    await stores.close();
    noteTime();
    clock.stop();
    lock?.release();
  }
  return { url, newKey, key, isFirstStart: shared ? newKey !== undefined : directory.isNew, stop };
}

/** Containers by the engine that this server's environment leads to; what is wrong with that stops nothing but them. */
function findContainers(isOn: boolean, env: NodeJS.ProcessEnv, hostId: string, logsDir: string, emit: Emit) {
  if (!isOn) {
    const off = "container images are turned off here (MILLRACE_CONTAINERS); use a directory as the image";
    return { engine: undefined, containers: noContainers(off, logsDir) };
  }
  try {
    const engine = openEngine(engineAddress(env));
    return {
      engine,
      containers: dockerProvider(engine, hostId, logsDir, (message) => emit({ type: "server.warning", message })),
    };
  } catch (error) {
    return {
      engine: undefined,
      containers: noContainers(error instanceof Error ? error.message : String(error), logsDir),
    };
  }
}

const hasOthers = (registry: Registry, hostNo: number, now: number): boolean =>
  registry.hosts.some((host) => host.no !== hostNo && host.seenAt > now - limits.hostSilenceMs);

interface Opening {
  readonly hostId: string;
  readonly clock: Clock & Partial<SystemClock>;
  readonly emit: Emit;
  readonly rings: { readonly onBack: () => void };
}

async function openStores(
  config: Config,
  directory: DataDirectory,
  { onFatal = () => {} }: AssembleParts,
  opening: Opening,
): Promise<Stores> {
  try {
    if (config.databaseUrl === undefined) return openSqlite({ path: directory.database, onFatal });
    return await openShared(config.databaseUrl, opening);
  } catch (error) {
    throw new StartError(error instanceof Error ? error.message : String(error));
  }
}

/** Opens the database that servers share, and follows its clock. One that starts with us is waited for. */
async function openShared(url: string, { hostId, clock, emit, rings }: Opening): Promise<Stores> {
  const giveUpAt = clock.now() + limits.databaseStartMs;
  for (let tries = 1; ; tries++) {
    try {
      const stores = await openPostgres({ url, hostId, onBack: () => rings.onBack() });
      const ahead = stores.shared ? await aheadOf(stores.shared) : 0;
      if (Math.abs(ahead) > limits.clockSkewMsMax) {
        await stores.close();
        const [which, by] = [ahead > 0 ? "behind" : "ahead of", (Math.abs(ahead) / 1_000).toFixed(1)];
        throw new Error(`This machine's clock is ${by} s ${which} the database's: set it (by NTP), and start again.`);
      }
      clock.follow?.(ahead);
      return stores;
    } catch (error) {
      if (!isUnreachable(error)) throw error;
      if (clock.now() > giveUpAt) {
        const code = (error as { code?: string }).code ?? (error as Error).message;
        throw new Error(`The database cannot be reached (${code}): check MILLRACE_DATABASE_URL, and that it runs.`);
      }
      if (tries === 1)
        emit({ type: "server.warning", message: "the database does not answer yet; waiting for it", error });
      await clock.sleep(limits.databaseRetryMs);
    }
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
      "MILLRACE_SEAL_KEY is not the key that sealed the secrets stored here: set the one of the first start.",
    );
  }
  let newKey: string | undefined;
  if (config.apiKey !== undefined) directory.keep("api-key", config.apiKey);
  const keys = await stores.keys.keys();
  // where servers share a database, the first makes the key
  if (stores.shared && keys.length > 0 && !directory.holds("api-key")) return { key: undefined, newKey };
  const key = directory.secret("api-key", () => {
    newKey = `mr_${ids.secret(32)}`;
    return newKey;
  });
  const hash = vault.hash(key);
  if (!keys.some((each) => each.hash === hash)) {
    const scope = { kind: "everything" } as const;
    await stores.keys.add({ hash, ownerNo: admin.no, scope, prefix: key.slice(0, 6), isBootstrap: true });
  }
  return { key, newKey };
}

/** A line of takers for each endpoint, rung by its queue. */
function takeLines(
  lines: Map<number, TakeLine>,
  stores: Stores,
  registry: Registry,
  bell: Parts["bell"],
  clock: Parts["clock"],
  emit: Emit,
): Parts["line"] {
  return (endpointNo) => {
    let line = lines.get(endpointNo);
    if (line) return line;
    const topic = topics.queue(endpointNo);
    line = new TakeLine({
      take: (asks) => stores.jobs.take(endpointNo, asks, clock.now()),
      busyAt: (workerNo) => registry.workerByNo(workerNo)?.busyAt ?? 0,
      onError: (error) => emit({ type: "server.warning", message: "jobs could not be taken just now", error }),
      onLeft: () => bell.ringElsewhere(topic),
    });
    lines.set(endpointNo, line);
    const ringing = line;
    bell.on(topic, () => ringing.ring());
    return line;
  };
}

/** Asks every worker to stop, and waits until all have ended; the last are killed when the grace is over. */
async function stopWorkers(parts: Parts, graceMs: number): Promise<void> {
  const ours = () => parts.registry.liveWorkers().filter(({ row }) => row.hostNo === parts.place.hostNo);
  for (const worker of ours()) await stopWorker(parts, worker, "the server stops", graceMs);
  const deadline = parts.clock.now() + graceMs + limits.netMs;
  while (ours().length > 0 && parts.clock.now() < deadline) {
    // another server may have given us one just now
    for (const worker of ours())
      if (worker.row.wanted !== "stopped") await stopWorker(parts, worker, "the server stops", graceMs);
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

/** What the other servers call this machine: the address we listen on, or the one that workers are told. */
function hostAddress({ host, workerUrl }: Config): string {
  if (!/^(127\.|::1$|::$|0\.0\.0\.0$|localhost$)/.test(host)) return host;
  return workerUrl === undefined ? "127.0.0.1" : new URL(workerUrl).hostname.replace(/^\[|\]$/g, "");
}

const bracketed = (host: string) => (host.includes(":") ? `[${host}]` : host);
const reachable = (host: string) => (host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host);

export { StartError } from "./data-directory.js";

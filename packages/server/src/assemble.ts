import { readAbout } from "./about.js";
import { bracketed, hostAddress, serverAddress } from "./assembly/addresses.js";
import { ensureAdmin, keptKey, sealKeyOf } from "./assembly/admin.js";
import { hasOthers, openBell } from "./assembly/bell.js";
import { installationId, logsEverywhere, type OpenCluster, openClusters } from "./assembly/cluster.js";
import { gpuCounts } from "./assembly/gpu-counts.js";
import { factsHere } from "./assembly/here.js";
import { goOn, openAgain } from "./assembly/left-over.js";
import { runLoops } from "./assembly/loops.js";
import { notedSecrets } from "./assembly/noted-secrets.js";
import { connectionsMax } from "./assembly/open-files.js";
import { logsOfAll } from "./assembly/other-logs.js";
import { connectParts } from "./assembly/parts.js";
import { openProviders } from "./assembly/providers.js";
import { stockOf } from "./assembly/stock.js";
import { stopWorkers } from "./assembly/stop-workers.js";
import { openStores } from "./assembly/stores.js";
import { openEventOutput } from "./assembly/terminal.js";
import { workerCounts } from "./assembly/worker-counts.js";
import { workerUrl } from "./assembly/worker-url.js";
import { type Clock, PlainSignal, type SystemClock, systemClock } from "./clock.js";
import { type Config, isLoopback } from "./config.js";
import { isPod } from "./domain/pods/pod.js";
import { openGateway } from "./edges/gateway/gateway.js";
import { graphqlRoutes } from "./edges/graphql/routes.js";
import { buildHttp } from "./edges/server.js";
import { type Door, openDoor } from "./edges/shared/connections/door.js";
import { hostJudge } from "./edges/shared/connections/host-names.js";
import { workersDoor } from "./edges/worker-protocol/door.js";
import type { Emit } from "./events.js";
import { openDataDirectory, StartError } from "./host/data-directory.js";
import { machineInventory } from "./host/inventories/machine.js";
import type { Inventory } from "./host/inventory.js";
import { noQuota } from "./host/quotas/no-quota.js";
import { openQuota } from "./host/quotas/open-quota.js";
import { type Ids, systemIds } from "./ids.js";
import { limits } from "./limits/index.js";
import type { TakeLine } from "./lines/take-line.js";
import { clusterLoops, Leases, ownedLoops } from "./loops/leases.js";
import { VolumeMeasuring } from "./loops/measure-volumes.js";
import { StockTaking } from "./loops/take-stock.js";
import { Registry } from "./memory/registry.js";
import { Marks } from "./operations/access/server-marks.js";
import { SignInLink } from "./operations/access/sign-in-link.js";
import { tracedJob } from "./operations/jobs/traced-job.js";
import type { JobSecrets, Provider } from "./provider.js";
import { Grants, Rates } from "./rates.js";
import type { Sender } from "./sender.js";
import { guardedSender } from "./senders/guarded.js";
import type { Stores } from "./store/index.js";
import { lockDirectory } from "./stores/sqlite/disk/lock.js";
import { metrics } from "./telemetry/metrics.js";
import { openTraces } from "./telemetry/traces.js";
import { localVault } from "./vaults/local.js";

/** Replacements for parts, from tests and other modes. */
export interface AssembleParts {
  readonly clock?: Clock & Partial<SystemClock>;
  readonly ids?: Ids;
  readonly stores?: Stores;
  readonly provider?: Provider;
  readonly sender?: Sender;
  readonly inventory?: Inventory;
  /** A socket that is listening already. */
  readonly door?: Door;
  /** Called when the disk has failed: the process must end. */
  readonly onFatal?: (error: Error) => void;
}

/** A running service. */
export interface Millrace {
  readonly url: string;
  /** The dashboard; of a first start on loopback, a link that signs one person in. */
  readonly dashboardUrl: string;
  /** The bootstrap key, if this start has made it. */
  readonly newKey: string | undefined;
  /** Whether the data directory was empty. */
  readonly isFirstStart: boolean;
  /** Undefined if another server made it. */
  readonly key: string | undefined;
  /** Stops everything in order, as at SIGTERM: workers get their grace, and what they leave is given back. */
  stop(reason: string): Promise<void>;
}

/**
 * Connects everything; the only file that knows all others. Throws a {@link StartError} that its operator can act on.
 */
export async function assemble(config: Config, given: AssembleParts = {}): Promise<Millrace> {
  const directory = openDataDirectory(config.dataDir);
  const lock = lockDirectory(directory.lock);
  if (!lock) {
    throw new StartError(
      `Another server uses the data directory ${config.dataDir}: stop it, or set MILLRACE_DATA_DIR to another one.`,
    );
  }
  const door = given.door ?? (await openDoor(config.host, config.port, connectionsMax()));
  const url = `http://${bracketed(config.host)}:${door.port}`;
  // servers that share a database follow its clock
  const keepsTime = config.databaseUrl === undefined;
  const clock = given.clock ?? systemClock(keepsTime ? directory.read("clock") : undefined);
  const ids = given.ids ?? systemIds;
  const output = openEventOutput(config, clock);
  const listeners: Emit[] = [output.emit];
  const emit: Emit = (event) => {
    for (const listener of listeners) listener(event);
  };
  const hostId = directory.secret("host", () => ids.resource());
  const masked: { secretsOf: JobSecrets } = { secretsOf: () => async () => [] };
  const jobSecrets: JobSecrets = (workerId) => masked.secretsOf(workerId);
  const providers = openProviders(config, { hostId, logsDir: directory.logs, env: process.env, emit, jobSecrets });
  const machine = given.inventory ?? machineInventory(config.gpus, process.env);
  const stock = new StockTaking({ emit }, stockOf(machine, config, providers), config);
  const firstLook = stock.look(); // a sleeping driver takes seconds to wake

  const quota = config.volumeQuotas ? openQuota(directory.volumes) : noQuota("MILLRACE_VOLUME_QUOTAS is off.");

  /** Set once the bell is open. */
  const rings = { onBack: () => {}, onChange: () => {} };
  const opening = { onFatal: given.onFatal, serverId: hostId, clock, emit, rings };
  const stores = given.stores ?? (await openStores(config, directory, opening));
  const { shared } = stores;
  const sealKey = sealKeyOf(config, directory);
  const vault = localVault(Buffer.from(sealKey.hex, "hex"));
  const admin = () => ensureAdmin({ config, directory, stores, vault, sealKey, ids, clock });
  const { key, newKey } = await (shared ? shared.exclusively(admin) : admin());
  const registry = new Registry(stores, { onChange: () => rings.onChange(), now: clock.now });
  await registry.load(clock.now());

  masked.secretsOf = notedSecrets({ ...stores, vault, registry, clock }, { isAlone: shared === undefined });

  const hostNo = await stores.hosts.ensure(hostId, clock.now());
  // one data directory identifies both a server and the machine it runs on
  const server = { no: shared?.serverNo ?? hostNo, id: hostId };
  const clusters = await openClusters(config, {
    installation: await installationId(stores),
    logsDir: directory.logs,
    env: process.env,
    emit,
    jobSecrets,
    reported: (await shared?.hostFacts()) ?? new Map(),
    kept: { read: () => directory.read("cluster"), keep: (text) => directory.note("cluster", text) },
  });
  const numbered: (OpenCluster & { readonly no: number })[] = [];
  for (const cluster of clusters) numbered.push({ ...cluster, no: await stores.hosts.ensure(cluster.id, clock.now()) });
  const leases =
    shared && new Leases(clock, [...ownedLoops, ...numbered.flatMap(({ no }) => Object.values(clusterLoops(no)))]);
  const clusterHosts = numbered.map((cluster) => ({
    ...cluster,
    isTended: () => leases === undefined || leases.has(clusterLoops(cluster.no).tend),
  }));
  const sideDoor = workersDoor(config.host, door);
  if (config.workerUrl === undefined) await openAgain(sideDoor, registry, hostNo);
  const lines = new Map<number, TakeLine>();
  const bell = await openBell(config, { server, registry, clock, lines });
  rings.onBack = () => bell.ringAll();
  rings.onChange = () => bell.ringElsewhere("registry");
  const draining = new PlainSignal();
  const provider = given.provider ?? providers.provider;
  const everywhere = logsEverywhere(provider, clusterHosts, (workerId) => registry.worker(workerId)?.row);
  const here = factsHere(config, directory, {
    host: { no: hostNo, id: hostId },
    facts: () => stock.facts,
    providers,
    quota: await quota,
    clusters: clusterHosts,
    server: shared && { no: shared.serverNo, address: serverAddress(config, door.port) },
  });
  const made = { clock, ids, bell, registry, vault, emit, draining, here, bootstrapKey: keptKey(directory) };
  const isTraced = config.collector !== undefined;
  const parts = connectParts({ ...made, stores, provider: everywhere, lines, isTraced });
  const { logs } = everywhere;
  const { readsLogs } = here;
  output.connect({ ...parts, logs, readsLogs });
  const marks = new Marks(parts);

  const sender = given.sender ?? guardedSender({ allowPrivate: config.webhookPrivate });
  const isOurHost = hostJudge(config.hostNames, config.lbDomain);
  const ofGateway = { domain: config.lbDomain, isProxyTrusted: config.trustProxy, isOurHost };
  const gateway = openGateway(parts, { ...ofGateway, connections: door.connections });
  const meter = metrics({
    endpoints: () => registry.endpoints().filter((each) => !isPod(each)),
    tally: parts.tallies.tally,
    workers: (no) => workerCounts(parts, no),
    oldestWaiting: parts.tallies.oldestWaiting,
    gpus: () => gpuCounts(parts),
    now: clock.now,
  });
  registry.onForget((_no, id) => meter.forget(id));
  const measuring = new VolumeMeasuring(parts);
  const about = readAbout(config.commit);
  const traces =
    config.collector &&
    (await openTraces({
      ...config.collector,
      version: about.version,
      find: (endpointId, jobId) => tracedJob(parts, endpointId, jobId),
      emit,
    }));
  if (traces) listeners.push(traces.emit);
  listeners.push(meter.emit, measuring.hear, stock.hear, parts.news.hear);
  const isLocal = isLoopback(config.host) && !config.trustProxy;
  const signInLink = newKey !== undefined && isLocal ? new SignInLink(parts, newKey) : undefined;
  const app = await buildHttp(
    {
      ...parts,
      signInLink,
      gateway,
      isProxyTrusted: config.trustProxy,
      isOurHost,
      connections: door.connections,
      lbDomain: config.lbDomain,
      rates: config.rateLimits ? new Rates() : undefined,
      grants: shared && new Grants(shared.grant, () => !hasOthers(registry, server.no, clock.now())),
      requestsPerWorker: config.requestsPerWorker,
      metrics: meter.page,
      ...(shared ? { ...logsOfAll(parts, logs, marks), logsHere: { logs, marks } } : { logs, readsLogs }),
      about,
      isReady: () => stores.ping().then(() => true),
      graphql: (scope, setToZero) => graphqlRoutes(scope, { ...parts, setToZero, publicCatalog: config.publicCatalog }),
    },
    door.server,
    door.take,
  );

  const noteTime = () => {
    const bearing = keepsTime ? clock.bearing?.() : undefined;
    try {
      if (bearing !== undefined) directory.note("clock", bearing);
    } catch {
      // the previously saved time is good enough
    }
  };
  const tending = {
    provider,
    workerUrl: workerUrl(config, door.port, providers, sideDoor),
    tends: (no: number) => no === hostNo,
    startTimeoutMs: config.startTimeoutMs,
    homesDir: directory.homes,
    hostAddress: shared ? hostAddress(config) : "127.0.0.1",
    env: process.env,
  };
  const tendedClusters = clusterHosts.map((cluster) => ({
    ...cluster,
    tending: {
      ...tending,
      provider: cluster.provider,
      workerUrl: async () => config.workerUrl ?? "",
      tends: (no: number) => no === cluster.no,
    },
  }));
  const follow = (ms: number) => clock.follow?.(ms);
  const logsDir = directory.logs;
  await firstLook; // until the resources are known none are asked for or given out, but results are accepted already
  const loops = runLoops(parts, {
    tending,
    clusters: tendedClusters,
    polling: gateway,
    sender,
    stock,
    measuring,
    logsDir,
    endpoints: stores.endpoints,
    noteTime,
    shared,
    leases,
    follow,
  });
  await goOn(parts);
  directory.note("url", url); // the command line looks there
  emit({ type: "server.started", url });

  async function stop(reason: string): Promise<void> {
    emit({ type: "server.stopping", signal: reason });
    draining.abort();
    await loops.stopDeciding();
    await stopWorkers(parts, Math.min(config.stopGraceMs, limits.stopGraceMsDefault));
    await output.close();
    await Promise.all(
      [provider, ...clusters.map((each) => each.provider)].map((each) => each.leave(0).catch(() => {})),
    );
    await loops.stopServing();
    await traces?.close();
    // if this fails, the other servers notice in a few seconds
    await shared?.leave({ hostNos: [hostNo], seenAt: clock.now() - limits.hostSilenceMs }).catch(() => {});
    for (const open of [sender, sideDoor, gateway, door, app, bell, stores]) await open.close();
    noteTime();
    clock.stop();
    lock?.release();
  }
  const dashboardUrl = `${url}/${signInLink ? `#once=${signInLink.token}` : ""}`;
  return { url, dashboardUrl, newKey, key, isFirstStart: shared ? newKey !== undefined : directory.isNew, stop };
}

export { StartError } from "./host/data-directory.js";

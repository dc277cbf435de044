import type { MillraceEvent } from "../../packages/server/src/events.js";
import { createEndpoint } from "../../packages/server/src/operations/endpoints/save-endpoint.js";
import { createTemplate } from "../../packages/server/src/operations/templates/save-template.js";
import type { WorkerSpec } from "../../packages/server/src/provider.js";
import type { Stores } from "../../packages/server/src/store/index.js";
import { seededIds } from "../../packages/server/src/testing/seeded-ids-fixture.js";
import { seeded } from "../faults/random.js";
import { Clients } from "./clients.js";
import { SimulatedClock, type Timeline } from "./clock.js";
import { Fleet } from "./fleet.js";
import { away, Host } from "./host.js";
import { checkDeliveries, checkHolders, checkProcesses, checkStore, checkWaiting, type Scene } from "./invariants.js";
import { Ledger } from "./ledger.js";
import { Machine } from "./machine.js";
import { openStores } from "./opened-stores.js";
import { Receiver } from "./receiver.js";
import { Broken, Server, type Surroundings } from "./server.js";
import type { EndpointChange, Script } from "./steps.js";
import { Ticks } from "./ticks.js";
import { Turns } from "./turns.js";
import { Violated, type Violation } from "./violation.js";
import { Watch } from "./watch.js";

/** How often sleepers may wake at one moment. */
const wakesMax = 1_000;

/**
 * Everything in one history: time, the database, the machine with its processes, clients, receivers, and the present
 * server.
 */
export class World implements Scene {
  readonly #script: Script;
  readonly #clock = new SimulatedClock();
  readonly #turns = new Turns();
  readonly #surroundings: Omit<Surroundings, "timeline">;
  readonly #hostNo: number;
  #checkedAt = -1;
  #deaths = 0;
  #told = 0;
  #downMs = 0;
  #sickUntil = 0;
  readonly #ticks = new Ticks();
  /** Time outside the processes. */
  readonly outside: Timeline = this.#clock.timeline();
  readonly trace: string[] = [];
  readonly ledger: Ledger;
  readonly fleet: Fleet;
  readonly machine: Machine;
  readonly #watch: Watch;
  readonly host: Host;
  readonly clients: Clients;
  readonly stores: Stores;
  readonly endpoints: { readonly no: number; readonly id: string }[] = [];
  #templateId = "";
  violation: Violation | undefined;
  isCalm = false;
  server: Server | undefined;

  private constructor(script: Script, stores: Stores, hostNo: number, keyHash: string, directory: string) {
    this.#script = script;
    this.stores = stores;
    this.#hostNo = hostNo;
    this.ledger = new Ledger(
      {
        faultOf: (id, since) => this.host.doubles.get(id)?.isToBlame(since) ?? true,
        leftPoll: (id) => this.host.doubles.get(id)?.hasLeft ?? true,
        isResuming: (id) => this.server?.parts.registry.worker(id)?.row.wanted === "running",
        said: (id, jobId, output) => this.host.doubles.get(id)?.said(jobId, output) ?? false,
        askedTo: (what, name) => this.clients.askedTo(what, name),
      },
      this.note,
      this.broken,
    );
    const { note, broken, now } = this;
    const { jobs } = this.ledger;
    const isPaused = (id: string) => this.host.doubles.get(id)?.pausedAt !== undefined;
    this.machine = new Machine(script.machine, now, () => this.server?.noteStock());
    const { gpuLostAt } = this.machine;
    this.fleet = new Fleet({ jobs, now, isPaused, gpuLostAt, servedSince: () => this.#servedSince, note, broken });
    const worldOf = (end: (code: number) => void, { env }: WorkerSpec) => ({
      timeline: this.#clock.timeline(),
      wire: this.outside,
      random: seeded(script.seed * 1_000 + this.host.launches.length),
      isCalm: () => this.isCalm,
      diesAtStart: () => env.FAILS !== undefined || (!this.isCalm && this.now() < this.#sickUntil),
      ask: this.ask,
      note: this.note,
      end,
    });
    this.host = new Host(worldOf, this.outside, seeded(script.seed + 3));
    this.clients = new Clients(this);
    this.#watch = new Watch(this);
    const parts = { deaths: () => this.#deaths, broken: this.broken, note: this.note };
    this.#surroundings = {
      stores,
      turns: this.#turns,
      ids: seededIds(),
      provider: this.host,
      sender: new Receiver(this.outside, seeded(script.seed + 1), parts),
      directory,
      delays: script.delays ? seeded(script.seed + 2) : undefined,
      keyHash,
      facts: this.machine.facts,
      saw: (verb, args, result) => {
        this.fleet.saw(verb, args, result);
        this.ledger.saw(verb, args, result);
      },
      onEvent: this.#heard,
      onTick: this.#ticks.count,
      onDeath: this.#died,
    };
  }

  /** A world that stands still: `open` starts it, and what breaks from then on is a violation like any other. */
  static async create(script: Script, directory: string): Promise<World> {
    const { stores, hostNo, keyHash } = await openStores();
    return new World(script, stores, hostNo, keyHash, directory);
  }

  /** Starts a server, and creates a template and the script's endpoints. */
  async open(): Promise<void> {
    this.#startServer();
    await this.settle();
    void this.ask(async ({ parts, admin }) => {
      const template = { name: "worker", imageName: this.#surroundings.directory };
      this.#templateId = (await createTemplate(parts, admin, template)).id;
    });
    await this.settle();
    for (const input of this.#script.endpoints) {
      void this.createEndpoint(input);
      await this.settle();
    }
  }

  /** Since when a server has been running all its loops. */
  get #servedSince(): number {
    const { server } = this;
    return this.isUp && server ? server.listensSince : Number.POSITIVE_INFINITY;
  }

  async close(): Promise<void> {
    this.server?.kill();
    await this.stores.close();
  }

  createEndpoint = (input: EndpointChange): Promise<void> =>
    this.ask(async ({ parts, admin }) => {
      const more = { name: "queue", templateId: this.#templateId, executionTimeoutMs: 60_000 };
      const { no, id } = await createEndpoint(parts, admin, { ...input, ...more });
      this.endpoints.push({ no, id });
    }).catch((error) => void (error instanceof Broken || this.broken("no failure", String(error))));

  // the trace

  now = (): number => this.#clock.now();
  note = (line: string): void => void this.trace.push(`${this.now() - 1_790_000_000_000} ${line}`);
  broken = (rule: string, sentence: string): void => {
    this.violation ??= { rule, sentence };
    this.note(`BROKEN: ${rule}: ${sentence}`);
  };
  #heard = (event: MillraceEvent): void => {
    if (event.type === "job.givenBack") this.note(`${event.jobId} was given back: ${event.why}`);
    if (event.type !== "server.warning" || !event.error) return;
    if (event.error instanceof Error && event.error.message === away) return;
    const error = event.error instanceof Error ? event.error.stack : event.error;
    this.broken("no failure", `${event.message}: ${error}`);
  };

  // the server

  #startServer(): void {
    this.server = new Server({ ...this.#surroundings, timeline: this.#clock.timeline() }, this.#hostNo);
    this.note("the server starts");
    void this.server.start();
  }
  #died = (): void => {
    this.#deaths++;
    this.note("the server is dead");
    this.host.disconnect();
    void this.outside.sleep(this.isCalm ? 0 : this.#downMs).then(() => this.#startServer());
  };
  killServer(calls: number, downMs: number): void {
    this.#downMs = downMs;
    if (calls === 0) this.server?.kill();
    else this.server?.dieAfter(calls);
  }
  /** As with SIGTERM. */
  stopServer(downMs: number): void {
    const { server } = this;
    if (!server?.isReady || server.isOver || server.isDraining) return;
    this.#downMs = downMs;
    void server.stop();
  }
  get isUp(): boolean {
    const { server } = this;
    return server?.isReady === true && !server.isHeld && !server.isOver && !server.isDraining;
  }
  get isDraining(): boolean {
    return this.server?.isDraining === true;
  }
  /** As with SIGSTOP for a while. */
  freezeServer(ms: number): void {
    const { server } = this;
    if (!server || server.isOver || server.isHeld) return;
    server.freeze();
    void this.outside.sleep(ms).then(() => server.isOver || server.thaw(ms, ms > 6_000));
  }
  /** Suspends the whole machine. */
  suspend(ms: number): void {
    this.#clock.jump(ms);
    if (this.server && !this.server.isOver && !this.server.isHeld) {
      this.server.listensSince = this.now();
      this.server.timeline.tellGap(ms);
    }
    this.#clock.moveTo(this.now());
  }
  ask = async <T>(operation: (server: Server) => Promise<T>): Promise<T> => {
    if (!this.server) throw new Broken();
    return this.server.ask(operation);
  };
  /** Makes workers that start from now on die at once, for a while. */
  sicken(ms: number): void {
    this.#sickUntil = this.now() + ms;
  }

  // time

  /** Lets everything happen that needs no time, then checks all promises. */
  async settle(): Promise<void> {
    for (let wakes = 0; ; wakes++) {
      const isAtRest = wakes < wakesMax && (await this.#turns.settle());
      if (!isAtRest) this.broken("loops are quiet", "something keeps running without time passing");
      const next = this.#clock.nextAt();
      if (!isAtRest || next === undefined || next > this.now()) break;
      this.#clock.moveTo(next);
    }
    await this.#check();
  }

  async pass(ms: number): Promise<void> {
    const until = this.now() + ms;
    await this.settle();
    const next = () => Math.min(this.#clock.nextAt() ?? until + 1, Math.max(this.now() + 1, this.#watch.dueAt));
    for (let at = next(); at <= until; at = next()) {
      this.#clock.moveTo(at);
      await this.settle();
    }
    this.#clock.moveTo(until);
    await this.settle();
  }

  /** Wakes the next sleeper, and does not wait for the consequences. */
  nextTimer(): void {
    const at = this.#clock.nextAt();
    if (at !== undefined) this.#clock.moveTo(at);
  }

  async #check(): Promise<void> {
    const { changes } = this.ledger;
    if (changes !== this.#checkedAt)
      await checkStore(
        this,
        this.endpoints.map(({ no }) => no),
      );
    this.#checkedAt = changes;
    checkHolders(this);
    checkProcesses(this);
    checkWaiting(this);
    this.#watch.check();
    this.#ticks.check(this);
    if (this.violation) throw new Violated();
  }

  /** Checks everything that happened, not only the state at rest. */
  async checkAll(isOver: boolean): Promise<void> {
    let told = 0;
    for (const { submitted, ends } of this.ledger.jobs.values()) if (submitted.webhook !== undefined) told += ends;
    if (told === this.#told && !isOver) return;
    this.#told = told;
    await checkDeliveries(
      this,
      this.endpoints.map(({ no }) => no),
      isOver,
    );
    if (this.violation) throw new Violated();
  }
}

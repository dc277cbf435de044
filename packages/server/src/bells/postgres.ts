import { randomUUID } from "node:crypto";
import pg from "pg";
import type { Bell, Topic } from "../bell.js";
import { realTime, type Timer } from "../clock.js";
import { limits } from "../limits/index.js";
import { localBell } from "./local.js";

export interface PostgresBellOptions {
  readonly url: string;
  /** This server's id; only one server at a time may have it. */
  readonly serverId: string;
  /** Whether no other server is there to be notified. */
  readonly isAlone: () => boolean;
  /** Whether a waiter on this server takes care of the topic, so that the others need not wake. */
  readonly isServedHere: (topic: Topic) => boolean;
  /** Reads again what other servers have changed. */
  readonly refresh: () => Promise<void>;
}

/** Another server has this id on the same database. */
export class ServerTaken extends Error {}

const channel = "millrace";
/** Announces that a server has begun to listen. */
const everything = "*";

/** Topics to pass on at once; the others concern rows that the registry must read first. */
const isHot = (topic: string) => /^(job|queue|stops):/.test(topic);

/**
 * A bell across servers. It rings here at once, and on the other servers through database notifications, which are
 * gathered and sent after the commit. Throws {@link ServerTaken} if another server has this id.
 */
export async function postgresBell(options: PostgresBellOptions): Promise<Bell> {
  const self = randomUUID();
  const local = localBell();
  const sender = new Sender(options.url, self);
  let refreshed: Promise<void> = Promise.resolve();

  const hear = async (topics: readonly string[]) => {
    for (const topic of topics.filter(isHot)) local.ring(topic as Topic);
    if (topics.includes(everything)) local.ring("hosts");
    if (topics.includes("registry")) refreshed = options.refresh().catch(() => {}); // read again soon in any case
    await refreshed;
    for (const topic of topics) if (!isHot(topic)) local.ring(topic as Topic);
  };
  const ear = new Ear(options, (payload) => {
    const [from, ...topics] = payload.split(" ");
    if (from !== self) void hear(topics);
  });
  ear.onOpen = () => {
    // rings were missed while the connection was down: every listener must look again
    local.ringAll();
    sender.send(everything);
  };
  await ear.begin().catch(async (error) => {
    await Promise.all([ear.close(), sender.close(), local.close()]);
    throw error;
  });
  // the safety net: a lost ring delays its effect by at most this long
  const net = realTime.every(limits.netMs, () => {
    if (!options.isAlone()) local.ringAll();
  });
  net.unref();

  return {
    ring(topic) {
      local.ring(topic);
      if (!options.isAlone() && !options.isServedHere(topic)) sender.send(topic);
    },
    ringElsewhere(topic) {
      if (!options.isAlone()) sender.send(topic);
    },
    on: local.on,
    ringAll: local.ringAll,
    async close() {
      realTime.cancel(net);
      await Promise.all([ear.close(), sender.close(), local.close()]);
    },
  };
}

/**
 * A machine without power does not close its connections: these settings make the database notice, and release the
 * session's locks.
 */
const deadAfter = [
  "tcp_keepalives_idle=3",
  "tcp_keepalives_interval=1",
  "tcp_keepalives_count=3",
  `tcp_user_timeout=${limits.netMs}`,
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

const clientOf = (url: string) =>
  new pg.Client({
    connectionString: url,
    application_name: "millrace bell",
    keepAlive: true,
    options: deadAfter,
    connectionTimeoutMillis: limits.connectMs,
    query_timeout: limits.netMs,
  });

/** Sends rings to other servers, one notification at a time, with all topics gathered so far. */
class Sender {
  readonly #url: string;
  readonly #self: string;
  #client: pg.Client | undefined;
  #gathered = new Set<string>();
  #sending = false;
  #closed = false;

  constructor(url: string, self: string) {
    this.#url = url;
    this.#self = self;
  }

  send(topic: string): void {
    this.#gathered.add(topic);
    if (this.#sending || this.#closed) return;
    this.#sending = true;
    void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    while (this.#gathered.size > 0 && !this.#closed) {
      await realTime.sleep(limits.notifyGatherMs);
      const topics = this.#gathered;
      this.#gathered = new Set();
      try {
        this.#client ??= await connected(this.#url);
        for (const payload of payloads(this.#self, topics)) {
          await this.#client.query({ name: "notify", text: "SELECT pg_notify($1, $2)", values: [channel, payload] });
        }
      } catch {
        // the safety net covers lost rings
        this.#client?.end().catch(() => {});
        this.#client = undefined;
        await realTime.sleep(limits.reconnectMs);
      }
    }
    this.#sending = false;
    if (this.#closed) await this.#end();
  }

  async #end(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#end();
  }
}

async function connected(url: string): Promise<pg.Client> {
  const client = clientOf(url);
  client.on("error", () => {}); // its next query fails
  await client.connect();
  return client;
}

/** Packs topics into as few payloads as possible, each with the sender's id. */
function* payloads(self: string, topics: Iterable<string>): Generator<string> {
  let payload = self;
  for (const topic of topics) {
    if (payload.length + topic.length + 1 > limits.notifyBytesMax) {
      yield payload;
      payload = self;
    }
    payload += ` ${topic}`;
  }
  yield payload;
}

const lockHost = "SELECT pg_try_advisory_lock(hashtextextended('host ' || $1, 0)) AS held";
const endFormer = `SELECT pg_terminate_backend(pid, ${limits.beatMs}) FROM pg_stat_activity
  WHERE pid = $1 AND pid <> pg_backend_pid() AND usename = current_user AND application_name = 'millrace bell'`;

/**
 * The listening connection, checked every few seconds and reopened if it is dead. While open it holds its host's lock,
 * so that two servers on copies of one data directory detect each other.
 */
class Ear {
  readonly #url: string;
  readonly #serverId: string;
  readonly #onPayload: (payload: string) => void;
  #client: pg.Client | undefined;
  /** The database process of the last connection; after a break, it may hold the lock until it is terminated. */
  #former: number | undefined;
  #isHost = false;
  #timer: Timer | undefined;
  #closed = false;
  onOpen: () => void = () => {};

  constructor({ url, serverId }: PostgresBellOptions, onPayload: (payload: string) => void) {
    this.#url = url;
    this.#serverId = serverId;
    this.#onPayload = onPayload;
  }

  /** Opens the connection for the first time. A server killed just now may hold the lock for a moment. */
  async begin(): Promise<void> {
    await this.#open();
    const giveUpAt = realTime.monotonicMs() + limits.hostLockMs;
    while (!this.#isHost) {
      if (realTime.monotonicMs() > giveUpAt) throw new ServerTaken(`another server has the id ${this.#serverId}`);
      await realTime.sleep(limits.reconnectMs);
      if (this.#client) await this.#lock(this.#client).catch(() => {}); // if it ends, another one is opened
    }
  }

  async #lock(client: pg.Client): Promise<void> {
    const isFree = async () =>
      (await client.query<{ held: boolean }>(lockHost, [this.#serverId])).rows[0]?.held === true;
    let isOurs = await isFree();
    if (!isOurs && this.#former !== undefined) {
      await client.query(endFormer, [this.#former]);
      isOurs = await isFree();
    }
    this.#isHost = isOurs;
  }

  async #open(): Promise<void> {
    const client = await connected(this.#url);
    client.on("notification", ({ payload }) => payload && this.#onPayload(payload));
    client.on("end", () => {
      if (this.#client === client) void this.#again();
    });
    try {
      await this.#lock(client);
      await client.query(`LISTEN ${channel}`);
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
    if (this.#closed) return client.end();
    this.#client = client;
    if (this.#isHost) this.#former = (client as unknown as { processID?: number }).processID;
    this.#later();
    this.onOpen();
  }

  #later(): void {
    this.#timer = realTime.after(limits.netMs, () => void this.#check());
    this.#timer.unref();
  }

  async #check(): Promise<void> {
    const client = this.#client;
    if (!client || this.#closed) return;
    try {
      await (this.#isHost ? client.query("SELECT 1") : this.#lock(client));
      if (this.#client === client) this.#later();
    } catch {
      if (this.#client === client) await this.#again();
    }
  }

  async #again(): Promise<void> {
    this.#isHost = false;
    realTime.cancel(this.#timer);
    const dead = this.#client;
    this.#client = undefined;
    void dead?.end().catch(() => {});
    while (!this.#closed) {
      try {
        return await this.#open();
      } catch {
        await realTime.sleep(limits.reconnectMs * 5);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    realTime.cancel(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }
}

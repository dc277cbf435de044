import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, startServer, type TestServer } from "../../harness.js";
import { SmallDisk } from "../disk/small-disk.js";
import { isAlive } from "../machine/processes.js";
import { startProxy, type TcpProxy } from "../machine/proxy.js";
import { WallClock } from "../machine/wall-clock.js";
import type { Random } from "../random.js";
import type { Target } from "../scene.js";
import { type Database, type DatabaseKind, openDatabase } from "./database.js";

/** One server with its own data directory, and our proxies in front of it. */
export interface Post {
  readonly server: TestServer;
  /** The address that clients call. */
  readonly clients: TcpProxy;
  /** The address that this server's workers call. */
  readonly workers: TcpProxy;
  readonly clock: WallClock;
  /** True while one act kills and restarts this server: other acts leave it alone. */
  isDown: boolean;
}

/** The configuration of a campaign. */
export interface Settings {
  readonly database: DatabaseKind;
  readonly servers: number;
  /** Whether the data directories lie on a file system that can be filled (needs root). */
  readonly smallDisk: boolean;
}

const apiKey = "mr_test_0123456789abcdef0123456789abcdef";
const startsMax = 30;
const restartPauseMs = 200;

/** A campaign's servers, their database, and the proxies between them and all other parties. */
export class Fleet {
  readonly posts: readonly Post[];
  readonly database: Database;
  readonly disk: SmallDisk | undefined;

  private constructor(posts: readonly Post[], database: Database, disk: SmallDisk | undefined) {
    this.posts = posts;
    this.database = database;
    this.disk = disk;
  }

  static async open({ database: kind, servers, smallDisk }: Settings): Promise<Fleet> {
    const disk = smallDisk ? SmallDisk.mount() : undefined;
    const database = await openDatabase(kind);
    const posts: Post[] = [];
    const fleet = new Fleet(posts, database, disk);
    try {
      for (let n = 0; n < servers; n++) posts.push(await openPost(n, database, disk));
      return fleet;
    } catch (error) {
      await fleet.end();
      throw error;
    }
  }

  /** A server's own address without a proxy, for calls that are not a part of the campaign. */
  get direct(): Target {
    return this.posts[0]!.server;
  }

  /** An address for a client: any of the servers, through its proxy. */
  front(random: Random): Target {
    const { clients, server } = random.pick(this.posts);
    return { url: `http://127.0.0.1:${clients.port}`, key: server.key };
  }

  /** The lines of the servers' logs about a worker. */
  said(worker: string): string[] {
    return this.posts.flatMap(({ server }) =>
      server
        .log()
        .split("\n")
        .filter((line) => line.includes(worker)),
    );
  }

  async end(): Promise<void> {
    for (const { server, clients, workers, clock } of this.posts) {
      await server.end();
      await clients.end();
      await workers.end();
      clock.end();
    }
    await this.database.end();
    this.disk?.end();
  }
}

async function openPost(n: number, database: Database, disk: SmallDisk | undefined): Promise<Post> {
  const port = await freePort();
  const [clients, workers] = [await startProxy(port), await startProxy(port)];
  const clock = new WallClock();
  const server = await startServer({
    MILLRACE_RATE_LIMITS: "off",
    MILLRACE_LOG_LEVEL: "info",
    MILLRACE_PORT: String(port),
    MILLRACE_API_KEY: apiKey,
    MILLRACE_WORKER_URL: `http://127.0.0.1:${workers.port}`,
    ...(disk === undefined ? {} : { MILLRACE_DATA_DIR: dataDirOn(disk, n) }),
    ...clock.env,
    ...database.env,
  });
  return { server, clients, workers, clock, isDown: false };
}

function dataDirOn(disk: SmallDisk, n: number): string {
  const path = join(disk.folder, `server-${n}`);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

/**
 * Starts a server again. If it gives up because its database is away, or is killed, it is started anew, as a supervisor
 * would do.
 */
export async function revive({ server }: Post): Promise<void> {
  for (let n = 1; ; n++) {
    try {
      return await server.restart();
    } catch (error) {
      if (n === startsMax) throw error;
      if (isAlive(server.pid)) await server.kill();
      await sleep(restartPauseMs);
    }
  }
}

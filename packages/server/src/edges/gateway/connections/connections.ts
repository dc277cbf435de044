import { Client } from "undici";

/**
 * Connections to one worker, each for one request at a time. The most recently used one is reused first, so that the
 * others idle and close. (undici's own pool scans all connections on every request: 0017.)
 */
export class Connections {
  readonly #url: string;
  readonly #options: Client.Options;
  readonly #all = new Set<Client>();
  readonly #idle: Client[] = [];
  #isClosing = false;

  constructor(url: string, options: Client.Options) {
    this.#url = url;
    this.#options = options;
  }

  /** A connection for the caller's exclusive use until it is given back. */
  lend(): Client {
    return this.#idle.pop() ?? this.#open();
  }

  /** Takes a connection back; `isWell`: it may carry another request. */
  giveBack(client: Client, isWell: boolean): void {
    if (isWell && !this.#isClosing && this.#all.has(client)) this.#idle.push(client);
    else this.#drop(client);
  }

  /** Lets requests in flight end first. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#all].map((client) => client.close()));
    this.#all.clear();
  }

  async destroy(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#all].map((client) => client.destroy()));
    this.#all.clear();
  }

  #open(): Client {
    const client = new Client(this.#url, this.#options);
    this.#all.add(client);
    client.on("disconnect", () => {
      const at = this.#idle.indexOf(client);
      if (at === -1) return;
      this.#idle.splice(at, 1);
      this.#drop(client);
    });
    return client;
  }

  #drop(client: Client): void {
    if (this.#isClosing) return;
    this.#all.delete(client);
    void client.destroy().catch(() => {});
  }
}

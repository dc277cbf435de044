import { Client } from "undici";

/**
 * Connections to one worker, each with one request at a time. The one used last is used next: the others reach the end of
 * their idle time, and go. (undici's own pool looks through all connections for every request: 0017.)
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

  /** One that nobody else has until it is given back. */
  lend(): Client {
    return this.#idle.pop() ?? this.#open();
  }

  /** Its request is over; `isWell`: as it should be, so that it may carry another. */
  giveBack(client: Client, isWell: boolean): void {
    if (isWell && !this.#isClosing && this.#all.has(client)) this.#idle.push(client);
    else this.#drop(client);
  }

  /** What is on its way ends first. */
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

import { afterEach, beforeEach } from "vitest";
import type { JobSecrets, Provider, WorkerSpec } from "../../provider.js";
import { Stage } from "../puppet-fixture.js";

/** What the contract asks a provider to start; the provider's own test adds the settings of its kind. */
export interface Wish {
  readonly workerId: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A directory that the worker must see under this path: its puppet is in it. */
  readonly directory: string;
}

/** A provider opened for the contract. */
export interface OpenedProvider {
  readonly provider: Provider;
  launch(wish: Wish): WorkerSpec;
  /** Launches that must fail, and the error to expect. */
  readonly unstartable: readonly [why: RegExp, launch: (wish: Wish) => WorkerSpec][];
  /** The provider of another server for the same host, after the earlier server has left. */
  again(more?: { readonly jobSecrets: JobSecrets }): Promise<Provider>;
  end(): Promise<void>;
}

/** What not every provider can do. */
export interface Abilities {
  /** It does not know which pipe a line came from. */
  readonly mixesPipes?: true;
}

/** Resolves when the provider first reports the end of this worker. */
export const endOf = (provider: Provider, workerId: string): Promise<void> =>
  new Promise((resolve) => provider.onEnd((id) => void (id === workerId && resolve())));

/** The worker of most tests. */
export const id = "worker00000001";

/** A provider for each test, and a stage for the puppets that it starts. */
export class ContractScene {
  stage!: Stage;
  opened!: OpenedProvider;

  readonly abilities: Abilities;

  constructor(open: () => Promise<OpenedProvider>, abilities: Abilities) {
    this.abilities = abilities;
    beforeEach(async () => {
      this.stage = new Stage();
      await this.stage.open();
      this.opened = await open();
    });
    afterEach(async () => {
      await this.stage.close();
      await this.opened.end();
    });
  }

  get provider(): Provider {
    return this.opened.provider;
  }

  wish = (workerId = id): Wish => ({
    workerId,
    directory: this.stage.directory,
    command: this.stage.command(workerId),
    env: { PATH: process.env.PATH ?? "", RUNPOD_POD_ID: workerId, GREETING: "hello $HOME" },
  });

  launch = (workerId = id): WorkerSpec => this.opened.launch(this.wish(workerId));

  start = async (workerId = id) => {
    const handle = await this.provider.start(this.launch(workerId));
    return { handle, puppet: await this.stage.meet(workerId) };
  };
}

/** A Docker Engine that its maker starts, breaks and removes. */
export interface TestDocker {
  /** For DOCKER_HOST. */
  readonly host: string;
  readonly socketPath: string;
  /** The address of this machine that its containers see. */
  readonly gateway: string;
  /** A range that no network has yet. */
  readonly subnet: string;
  /** Runs its command line; throws what that complains of. */
  docker(...args: string[]): string;
  log(): string;
  /** Starts it again after `stop`. */
  start(): Promise<void>;
  /** SIGTERM unless told otherwise; containers live on. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Ends what it runs, stops it and removes its folder. */
  end(): Promise<void>;
  /**
   * Makes an image of programs of this machine with what they load, and what `libraries` (among the files) load; of more files
   * (path in the image: path here); and of changes (`CMD …`).
   */
  makeImage(
    name: string,
    parts: {
      programs: readonly string[];
      libraries?: readonly string[];
      files?: Readonly<Record<string, string>>;
      changes?: readonly string[];
    },
  ): string;
  /** Writes an image into a file, as `docker save` does. */
  saveImage(name: string, file: string): void;
}

export function startDocker(): Promise<TestDocker>;

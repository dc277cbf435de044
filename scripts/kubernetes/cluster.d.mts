type Part = "etcd" | "api" | "controllers" | "scheduler";

/** A Kubernetes cluster that its maker starts, breaks and removes. */
export interface TestCluster {
  /** The administrator's. */
  readonly kubeconfig: string;
  readonly home: string;
  readonly url: string;
  /** The address of this machine that its pods see. */
  readonly gateway: string;
  readonly node: {
    /** Pods live on. */
    stopKubelet(signal?: NodeJS.Signals): Promise<void>;
    startKubelet(): void;
    log(): string;
  };
  /** Runs kubectl as the administrator; throws what it complains of. */
  kubectl(...args: string[]): string;
  /** Applies manifests. */
  apply(...objects: object[]): void;
  /** Posts an object to a path of the API. */
  create(path: string, object: object): void;
  /** Waits until kubectl succeeds with these arguments. */
  until(...args: string[]): Promise<void>;
  start(part: Part): void;
  /** Kills a part. */
  stop(part: Part): Promise<void>;
  signal(part: Part, name: NodeJS.Signals): void;
  log(part: Part): string;
  untilApiAnswers(): Promise<void>;
  /** Makes an image of programs of this machine with what they load; see the same of a Docker engine. */
  makeImage(
    name: string,
    parts: {
      programs?: readonly string[];
      libraries?: readonly string[];
      files?: Readonly<Record<string, string>>;
      changes?: readonly string[];
    },
  ): string;
  /** Writes an image into a file, as `docker save` does. */
  saveImage(name: string, file: string): void;
  end(): Promise<void>;
}

export function startCluster(options?: {
  /** Without one, nothing runs. */
  readonly hasNode?: boolean;
  /** Further arguments of parts. */
  readonly settings?: { readonly api?: readonly string[]; readonly controllers?: readonly string[] };
}): Promise<TestCluster>;

import type { TestCluster } from "./cluster.mjs";
import type { FakeWorkers } from "./fake-workers.mjs";

/** Nodes that exist only in the API, as `fake-0` and so on. */
export function fakeNodes(
  cluster: TestCluster,
  count: number,
  workers?: FakeWorkers,
  /** What each node has. */
  resources?: Readonly<Record<string, string>>,
): Promise<{ end(): Promise<void> }>;

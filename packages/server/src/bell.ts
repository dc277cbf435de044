/** "Something changed": wakes who listens, never says what. A lost ring costs a little time, never a result. */
export interface Bell {
  ring(topic: Topic): void;
  /** Rings at the other servers alone, where there are any: this one knows, or can do no more. */
  ringElsewhere(topic: Topic): void;
  /** Calls `listener` at every ring of `topic`, synchronously; the answer ends it. */
  on(topic: Topic, listener: () => void): () => void;
  /** Rings everything here: something may have been missed. */
  ringAll(): void;
  close(): Promise<void>;
}

/** What can change. Worker and endpoint numbers are the store's. */
export type Topic =
  | `queue:${number}` // an endpoint has a job waiting
  | `job:${string}` // a job's state, progress or chunks changed
  | `stops:${number}` // a worker has jobs to stop, or is to answer its polls
  | `demand:${number}` // an endpoint's scaler should look again
  | "demand"
  | "workers" // a worker's row changed
  | "deliveries"
  | "deadlines"
  | "expiries"
  | "hosts" // another server is there
  | "registry"; // what every server has in memory was changed

export const topics = {
  queue: (endpointNo: number): Topic => `queue:${endpointNo}`,
  job: (jobId: string): Topic => `job:${jobId}`,
  stops: (workerNo: number): Topic => `stops:${workerNo}`,
  demand: (endpointNo: number): Topic => `demand:${endpointNo}`,
};

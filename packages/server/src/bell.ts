/** "Something changed": wakes listeners and says nothing more. A lost ring costs a little time, never a result. */
export interface Bell {
  ring(topic: Topic): void;
  /** Rings only on the other servers, if there are any: this server knows already, or can do no more. */
  ringElsewhere(topic: Topic): void;
  /** Calls `listener` at every ring of `topic`, synchronously. The returned function ends it. */
  on(topic: Topic, listener: () => void): () => void;
  /** Rings every topic here, because rings may have been missed. */
  ringAll(): void;
  close(): Promise<void>;
}

/** What can change. Worker and endpoint numbers are those of the store. */
export type Topic =
  | `queue:${number}` // an endpoint has a job waiting
  | `job:${string}` // a job's state, progress or chunks changed
  | `stops:${number}` // a worker has jobs to stop, or its polls must be answered
  | `demand:${number}` // an endpoint's scaler should look again
  | "demand"
  | "workers" // a worker's row changed
  | "deliveries"
  | "deadlines"
  | "expiries"
  | "calls" // a request is held where there was none
  | "hosts" // another server has appeared or has news
  | "registry"; // something that every server keeps in memory was changed

export const topics = {
  queue: (endpointNo: number): Topic => `queue:${endpointNo}`,
  job: (jobId: string): Topic => `job:${jobId}`,
  stops: (workerNo: number): Topic => `stops:${workerNo}`,
  demand: (endpointNo: number): Topic => `demand:${endpointNo}`,
};

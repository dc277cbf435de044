/** Workers that exist only as calls. */
export interface FakeWorkers {
  /** How often each job was run to its end. */
  readonly runs: ReadonlyMap<string, number>;
  /** A pod runs from now on. */
  begin(uid: string, env: Readonly<Record<string, string>>): void;
  /** A pod has ended. */
  stop(uid: string): void;
  end(): Promise<void>;
}

export function fakeWorkers(): FakeWorkers;

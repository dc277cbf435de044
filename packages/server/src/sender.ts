/** What became of one outgoing call. */
export interface Sent {
  readonly status: number | undefined;
  readonly error: string | undefined;
}

/** Outgoing HTTP. Targets are checked at the address actually dialled; redirects are not followed. */
export interface Sender {
  post(url: string, body: string, headers: Record<string, string>, signal: AbortSignal): Promise<Sent>;
  close(): Promise<void>;
}

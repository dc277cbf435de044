/** The outcome of an outgoing call. */
export interface SendOutcome {
  readonly status: number | undefined;
  readonly error: string | undefined;
  /** The beginning of the reply's body, as plain text. */
  readonly reply?: string | undefined;
}

/** Outgoing HTTP. Targets are checked at the address actually dialled; redirects are not followed. */
export interface Sender {
  /** Sends a body in pieces, one after the other, as fast as they are taken. */
  post(
    url: string,
    body: readonly Uint8Array[],
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<SendOutcome>;
  close(): Promise<void>;
}

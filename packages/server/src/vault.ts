/** Hashing, signing and sealing: the only place that touches key material. */
export interface Vault {
  /** SHA-256, hex: how keys and secrets are stored. */
  hash(text: string | Uint8Array): string;
  /** The same of what comes with every request, a key or a worker's secret: the last ones are remembered. */
  hashKey(key: string): string;
  /** Whether two hashes are equal, in constant time. */
  equal(a: string, b: string): boolean;
  /** Encrypts a text with the server's seal key. */
  seal(text: string): string;
  open(sealed: string): string;
  /** An HMAC over a text, hex, with a key made of the seal key: servers that share a database know each other's words by it. */
  mac(text: string): string;
  /**
   * The Standard Webhooks signature headers of a payload, which comes in pieces, signed with a `whsec_…` secret. While a large one
   * is signed, others have their turn.
   */
  sign(
    secret: string,
    webhookId: string,
    wallMs: number,
    payload: readonly Uint8Array[],
  ): Promise<Record<string, string>>;
}

/** Hashing, signing and sealing: the only code that touches key material. */
export interface Vault {
  /** SHA-256 in hex: the form in which keys and secrets are stored. */
  hash(text: string | Uint8Array): string;
  /** The same for a key or a worker's secret, which come with every request: recent hashes are remembered. */
  hashKey(key: string): string;
  /** Whether two hashes are equal, in constant time. */
  equal(a: string, b: string): boolean;
  /** Encrypts a text with the server's seal key. */
  seal(text: string): string;
  open(sealed: string): string;
  /**
   * An HMAC over a text, in hex, with a key derived from the seal key: servers that share a database recognise each
   * other by it.
   */
  mac(text: string): string;
  /** A number of a list as 32 hexadecimal digits that reveal neither the number nor the order of two. */
  cover(list: string, value: number): string;
  /** The number of a text that `cover` made for this list; undefined for any other text of that form. */
  uncover(list: string, covered: string): number | undefined;
  /**
   * The Standard Webhooks signature headers for a payload in pieces, signed with each of these `whsec_…` secrets. While
   * a large payload is signed, other work gets its turn.
   */
  sign(
    secrets: readonly string[],
    webhookId: string,
    wallMs: number,
    payload: readonly Uint8Array[],
  ): Promise<Record<string, string>>;
}

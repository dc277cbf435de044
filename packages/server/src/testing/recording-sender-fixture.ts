import type { Sender, SendOutcome } from "../sender.js";

/** One outgoing call, waiting for the test's answer. */
export interface Post {
  readonly url: string;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly pieces: number;
  readonly headers: Record<string, string>;
  readonly answer: (sent: Partial<SendOutcome>) => void;
}

/** A sender that sends nothing: the test answers each call, or sets one answer for all. */
export class RecordingSender implements Sender {
  readonly posts: Post[] = [];
  /** If set, every call is answered with this status at once. */
  status: number | undefined;

  post(
    url: string,
    pieces: readonly Uint8Array[],
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<SendOutcome> {
    const text = Buffer.concat(pieces).toString();
    return new Promise((resolve) => {
      const answer = (sent: Partial<SendOutcome>) => resolve({ status: undefined, error: undefined, ...sent });
      this.posts.push({ url, text, pieces: pieces.length, body: JSON.parse(text), headers, answer });
      if (this.status !== undefined) answer({ status: this.status });
      signal.addEventListener("abort", () => answer({ error: "cut off" }), { once: true });
    });
  }

  async close(): Promise<void> {}
}

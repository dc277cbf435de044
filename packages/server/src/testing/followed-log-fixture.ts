import { limits } from "../limits/index.js";
import type { Scene } from "./scene-fixture.js";

/** Follows a log as the scene's admin: reads the event stream as far as a test wants. */
export async function followLog(scene: Scene, url: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  const reply = await fetch(url, {
    headers: { authorization: `Bearer ${scene.key}`, ...headers },
    signal: leaving.signal,
  });
  const reader = (reply.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let isOver = false;
  const blocks = () =>
    text
      .split("\n\n")
      .slice(0, -1)
      .filter((block) => !block.startsWith(":"));
  void (async () => {
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
      }
    } catch {
      // The test has closed the stream.
    }
    isOver = true;
  })();
  const fields = (block: string) => {
    const [, event] = /^event: (.*)$/m.exec(block) ?? [];
    const [, id] = /^id: (.*)$/m.exec(block) ?? [];
    return { event, id, data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "null") };
  };
  return {
    status: reply.status,
    type: reply.headers.get("content-type"),
    events: () => blocks().map(fields),
    texts: () =>
      blocks()
        .map(fields)
        .flatMap(({ event, data }) => (event === "line" ? [data.text] : [event])),
    /** Waits until this many events have arrived, while time passes. */
    async until(count: number): Promise<void> {
      await scene.until(async () => {
        await scene.advance(limits.logGatherMs);
        return blocks().length >= count;
      });
    },
    isOver: () => isOver,
    over: () => scene.until(() => isOver),
    leave: () => leaving.abort(),
  };
}

import { eventsOf } from "@millrace/api/client";
import { useEffect, useState } from "react";
import { client, saysNo } from "../../session.js";
import { readJson } from "./exact.js";
import { Json } from "./json.js";

const chunksKept = 5_000;
const againMs = 2_000;

/** What a job has streamed, as it comes. It does not consume chunks that other clients poll for. */
export function Stream({ endpointId, jobId }: { readonly endpointId: string; readonly jobId: string }) {
  const [chunks, setChunks] = useState<readonly unknown[]>([]);
  useEffect(() => {
    const over = new AbortController();
    /** Whether the job has ended, or is deleted. */
    async function listen(): Promise<boolean> {
      const reply = await client().open(
        `/v2/${endpointId}/stream/${jobId}`,
        { accept: "text/event-stream" },
        over.signal,
      );
      let start: string | undefined;
      let parts: unknown[] = [];
      for await (const events of eventsOf(reply, over.signal)) {
        for (const { event, data, id } of events) {
          if (event !== "chunk") continue;
          // a chunk's id is the number of the job's start and its own: another start begins anew
          if (id?.split("-")[0] !== start) parts = [];
          start = id?.split("-")[0];
          parts = [...parts, (readJson(data) as { output: unknown }).output].slice(-chunksKept);
        }
        if (!over.signal.aborted) setChunks(parts);
        if (events.some(({ event }) => event === "done" || event === "gone")) return true;
      }
      return false;
    }
    /** A stream that breaks, as one does whose server is started again, is asked for anew: it begins with the first chunk. */
    async function goOn() {
      while (!over.signal.aborted) {
        // what the server says no to is told by the job's status
        if (await listen().catch(saysNo)) return;
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    }
    setChunks([]);
    void goOn();
    return () => over.abort();
  }, [endpointId, jobId]);
  if (chunks.length === 0) return null;
  return (
    <section aria-labelledby="stream">
      <h2 id="stream">Stream</h2>
      {chunks.every((chunk) => typeof chunk === "string") ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <pre className="stream" tabIndex={0}>
          {chunks.join("")}
        </pre>
      ) : (
        <Json value={chunks} name={`${jobId}-stream`} />
      )}
    </section>
  );
}

/** One server-sent event. */
export interface SentEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/**
 * The events of a reply as they come: those that one read brought are together. Ends with the reply, or when `over` is
 * aborted.
 */
export async function* eventsOf(reply: Response, over?: AbortSignal): AsyncGenerator<readonly SentEvent[]> {
  if (!reply.body) return;
  const reader = reply.body.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  over?.addEventListener("abort", cancel);
  if (over?.aborted) cancel();
  const decoder = new TextDecoder();
  try {
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done || over?.aborted) return;
      text += decoder.decode(value, { stream: true });
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      const events = parts.map(eventOf).filter(({ data }) => data !== "");
      if (events.length > 0) yield events;
    }
  } finally {
    over?.removeEventListener("abort", cancel);
    cancel();
  }
}

function eventOf(part: string): SentEvent {
  const fields = part.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line));
  const of = (name: string) => fields.filter((field) => field?.[1] === name).map((field) => field?.[2] ?? "");
  return { event: of("event")[0] ?? "message", data: of("data").join("\n"), id: of("id")[0] };
}

/** An event of a stream of server-sent events. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** The events of a reply, as they come. */
export async function* followEvents(reply: Response): AsyncGenerator<StreamEvent> {
  let text = "";
  if (!reply.body) return;
  for await (const part of reply.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const each of events) {
      const of = (name: string) =>
        each
          .split("\n")
          .filter((line) => line.startsWith(`${name}: `))
          .map((line) => line.slice(name.length + 2))
          .join("\n");
      const data = of("data");
      if (data !== "") yield { event: of("event") || "message", data };
    }
  }
}

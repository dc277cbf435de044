import { describe, expect, it, vi } from "vitest";
import { limits } from "../../limits/index.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { type Added, EventText } from "./event-text.js";

const chunk = (value: unknown) => ({ output: JSON.stringify(value), metrics: undefined });

/** The texts that were added together, and the error that ended them. */
async function all(texts: AsyncIterable<Added>): Promise<Added> {
  const whole: Added[] = [];
  for await (const added of texts) whole.push(added);
  const error = whole.at(-1)?.error;
  return { text: whole.map(({ text }) => text).join(""), ...(error && { error }) };
}

/** The text that is sent for each of these chunks, and at the end. */
async function told(...values: unknown[]): Promise<string[]> {
  const text = new EventText();
  const parts: string[] = [];
  for (const value of values) parts.push((await all(text.addAll([chunk(value)]))).text);
  return [...parts, text.end()];
}

const events = 'data: {"n":1}\n\ndata: {"n":2}\r\n\r\ndata: [DONE]\n\n';

describe("Raw text", () => {
  it("that is cut after any of its characters is joined unchanged, and nothing is added", async () => {
    for (let cut = 1; cut < events.length; cut++) {
      const parts = await told(events.slice(0, cut), events.slice(cut));
      expect(parts.join("")).toBe(events);
    }
    expect((await told(...events)).join("")).toBe(events);
  });

  it("is sent as soon as an event is complete, and no sooner", async () => {
    expect(await told('data: {"n"', ':1}\n\ndata: {"n"', ":2}\n", "\n")).toEqual([
      "",
      'data: {"n":1}\n\n',
      "",
      'data: {"n":2}\n\n',
      "",
    ]);
  });

  it("without an end is sent when the job ends", async () => {
    expect(await told("data: 1\n\ndata: 2")).toEqual(["data: 1\n\n", "data: 2"]);
    expect(await told("data: [DONE]")).toEqual(["", "data: [DONE]"]);
  });

  it("of an event without an end is bounded", async () => {
    const text = new EventText();
    const { text: given } = await all(text.add(JSON.stringify(`data: ${"x".repeat(limits.openaiEventBytesMax)}`)));
    expect(given.length).toBe(limits.openaiEventBytesMax + 6);
    expect(text.isInEvent).toBe(true);
    expect((await all(text.add('"\\n\\n"'))).text).toBe("\n\n");
    expect(text.isInEvent).toBe(false);
  });
});

describe("Text that is not an event", () => {
  it("is sent as it arrives, and nothing is added", async () => {
    expect(await told("Hel", "lo", " world\n", "and more")).toEqual(["Hel", "lo", " world\n", "and more", ""]);
    const joined = (await told(..."idea\n\ndata: 1\n\ndatum: 2\nretry")).join("");
    expect(joined).toBe("idea\n\ndata: 1\n\ndatum: 2\nretry");
  });

  it("is recognised as soon as it differs from an event", async () => {
    expect(await told("da", "te", "\nda", "ta: 1\n\nHello", "\ndata: 2")).toEqual([
      "",
      "date",
      "\n",
      "data: 1\n\nHello",
      "\n",
      "data: 2",
    ]);
  });

  it("ends before an object's event begins", async () => {
    expect(await told("Hello", { n: 1 })).toEqual(["Hello", '\n\ndata: {"n":1}\n\n', "data: [DONE]\n\n"]);
  });
});

describe("Very many short strings without an end", () => {
  const words = Array.from({ length: 6_000 }, () => "w");
  const whole = `data: ${words.join("")}`;

  it.each([
    { it: "in a list", act: (text: EventText) => all(text.add(JSON.stringify(["data: ", ...words]))) },
    { it: "as chunks", act: (text: EventText) => all(text.addAll(["data: ", ...words].map(chunk))) },
  ])("$it are joined, while other work has its turns", async ({ act }) => {
    const text = new EventText();
    const { waits } = await withTurns(() => act(text));
    expect(waits).toBeGreaterThan(words.length);
    expect(text.end()).toBe(whole);
  });

  it("are each scanned only once", async () => {
    let chars = 0;
    const { lastIndexOf } = String.prototype;
    const counting = vi.spyOn(String.prototype, "lastIndexOf").mockImplementation(function (this: string, ...search) {
      chars += this.length;
      return lastIndexOf.apply(this, search);
    });
    await all(new EventText().add(JSON.stringify(["data: ", ...words])));
    counting.mockRestore();
    expect(chars).toBeLessThan(20 * words.length);
  });
});

describe("Objects", () => {
  it("are each the data of an event, and [DONE] ends them", async () => {
    expect(await told({ n: 1 }, { n: 2 })).toEqual(['data: {"n":1}\n\n', 'data: {"n":2}\n\n', "data: [DONE]\n\n"]);
  });

  it("of a list are separate events", async () => {
    expect(await told([{ n: 1 }, { n: 2 }, "data: 3\n\n"])).toEqual([
      'data: {"n":1}\n\ndata: {"n":2}\n\ndata: 3\n\n',
      "data: [DONE]\n\n",
    ]);
  });

  it("keep their numbers as written, and lose their line breaks", async () => {
    const text = new EventText();
    const odd = '{"big": 12345678901234567890,\n "huge": 1e400}';
    expect((await all(text.add(odd))).text).toBe('data: {"big": 12345678901234567890,  "huge": 1e400}\n\n');
    expect((await all(text.add('[{"big": 12345678901234567890}]'))).text).toBe(
      'data: {"big": 12345678901234567890}\n\n',
    );
  });

  it("after raw text with [DONE] send no second [DONE]", async () => {
    expect(await told({ n: 1 }, "data: [DONE]\n\n")).toEqual(['data: {"n":1}\n\n', "data: [DONE]\n\n", ""]);
  });

  it("after [DONE] are not sent, nor are errors", async () => {
    const error = { object: "error", message: "m", code: 400 };
    expect(await told("data: [DONE]\n\n", { n: 1 }, error)).toEqual(["data: [DONE]\n\n", "", "", ""]);
  });

  it("in the middle of an event begin a new event", async () => {
    expect(await told("data: 1", { n: 2 })).toEqual(["", 'data: 1\n\ndata: {"n":2}\n\n', "data: [DONE]\n\n"]);
  });

  it("that are null are skipped", async () => {
    expect(await told(null, { n: 1 })).toEqual(["", 'data: {"n":1}\n\n', "data: [DONE]\n\n"]);
  });

  it("that are errors end the stream, after the chunks before them", async () => {
    const text = new EventText();
    const added = await all(
      text.addAll([chunk({ n: 1 }), chunk([{ n: 2 }, { object: "error", message: "m", code: 400 }])]),
    );
    expect(added).toMatchObject({ text: 'data: {"n":1}\n\ndata: {"n":2}\n\n', error: { status: 400, message: "m" } });
  });
});

describe("A value that was too large for one chunk", () => {
  const pieces = (text: string, count: number) =>
    Array.from({ length: count }, (_, part) => {
      const size = Math.ceil(text.length / count);
      const output = JSON.stringify(text.slice(part * size, (part + 1) * size));
      return { output, metrics: JSON.stringify({ part, parts: count }) };
    });

  it("is an object again if it was one", async () => {
    const text = new EventText();
    expect(await all(text.addAll(pieces('{"embedding":[1,2,3]}', 3)))).toEqual({
      text: 'data: {"embedding":[1,2,3]}\n\n',
    });
    expect(text.end()).toBe("data: [DONE]\n\n");
  });

  it("is raw text again if it was raw text", async () => {
    const text = new EventText();
    expect(await all(text.addAll(pieces(events, 3)))).toEqual({ text: events });
    expect(text.end()).toBe("");
  });

  it("is raw text if it continues an event that has begun", async () => {
    const text = new EventText();
    await all(text.addAll([chunk("data: ")]));
    expect(await all(text.addAll([...pieces('{"n":1}', 2), chunk("\n\n")]))).toEqual({ text: 'data: {"n":1}\n\n' });
  });
});

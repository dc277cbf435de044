import { describe, expect, it } from "vitest";
import { mediaOf } from "./media.js";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";

describe("A text of an output", () => {
  it.each([
    [`data:image/png;base64,${png}`, { kind: "image", url: `data:image/png;base64,${png}` }],
    [png, { kind: "image", url: `data:image/png;base64,${png}` }],
    [`UklGR${"A".repeat(80)}`, { kind: "audio", url: `data:audio/wav;base64,UklGR${"A".repeat(80)}` }],
    ["data:text/html;base64,PHNjcmlwdD4=", undefined],
    ["https://example.com/a.png", undefined],
    ["iVBORw0KGgo", undefined],
    [`iVBORw0KGgo ${"words ".repeat(20)}`, undefined],
    ["hello", undefined],
  ])("is an image, audio or video only if it holds one: %.40s", (text, medium) => {
    expect(mediaOf(text)).toEqual(medium);
  });
});

/** What a text holds, if it is an image, audio or video. */
export interface Medium {
  readonly kind: "image" | "audio" | "video";
  readonly url: string;
}

/** How base64 of such files begins. */
const beginnings = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "audio/wav"],
  ["SUQz", "audio/mpeg"],
  ["T2dnUw", "audio/ogg"],
  ["GkXfo", "video/webm"],
] as const;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const lengthMin = 64;

export function mediaOf(text: string): Medium | undefined {
  const named = /^data:(image|audio|video)\/[\w.+-]+;base64,/.exec(text);
  if (named) return { kind: named[1] as Medium["kind"], url: text };
  const type = beginnings.find(([beginning]) => text.startsWith(beginning))?.[1];
  if (!type || text.length < lengthMin || !base64.test(text)) return undefined;
  return { kind: type.split("/")[0] as Medium["kind"], url: `data:${type};base64,${text}` };
}

export function Media({ kind, url }: Medium) {
  if (kind === "image") return <img className="media" src={url} alt="Part of this value" />;
  const Player = kind;
  return <Player className="media" src={url} controls />;
}

import { StartFailed } from "../../provider.js";

/** Messages of registries and engines about failed pulls, with their meaning; the first match counts. */
const pullFailures: readonly [said: RegExp, meaning: (hasAuth: boolean) => string][] = [
  [
    /toomanyrequests|too many requests|rate limit|\b429\b/i,
    () => "the registry accepts no more pulls from here for now",
  ],
  [/no space left on device|disk quota exceeded/i, () => "the disk is full"],
  [
    /unauthorized|denied|forbidden|authentication required|no basic auth|incorrect username|\b40[13]\b/i,
    (hasAuth) =>
      hasAuth
        ? "the registry does not accept the credentials of the template (containerRegistryAuthId), or has no such image"
        : "the registry has no such image, or asks for credentials (containerRegistryAuthId in the template)",
  ],
  [
    /manifest unknown|not found|does not exist|unknown manifest|\b404\b/i,
    () => "the registry has no such image or tag",
  ],
  [/no matching manifest|no match for platform/i, () => "the registry has it for other kinds of machines only"],
  [
    /dial tcp|lookup .* no such host|connection refused|connection reset|i\/o timeout|deadline exceeded|tls|x509|certificate|HTTP response to HTTPS|unreachable|\bEOF\b|timed? ?out|\b50[0234]\b/i,
    () => "the registry could not be reached",
  ],
  [/invalid reference format/i, () => "this is no name of an image"],
];

/** The credentials that an image was pulled with. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** Masks credentials, which a registry may echo as they are or encoded for URLs, JSON or headers. */
function withoutCredentials(text: string, { username, password }: Credentials): string {
  const pair = Buffer.from(`${username}:${password}`).toString("base64");
  const inner = (word: string) => JSON.stringify(word).slice(1, -1);
  const asWritten = (word: string) => [
    word,
    encodeURIComponent(word),
    inner(word),
    Buffer.from(word).toString("base64"),
  ];
  const masked = [pair, ...asWritten(password)].reduce((now, word) => now.replaceAll(word, "…"), text);
  // a user name may be a single letter: within other words it is not masked
  return asWritten(username).reduce(
    (now, word) => now.replace(new RegExp(`(?<!\\w)${literally(word)}(?!\\w)`, "g"), "…"),
    masked,
  );
}

const literally = (word: string) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** What the message of an engine or a registry about a failed pull means, in words, with the message itself. */
export function pullTrouble(whole: string, auth: Credentials | undefined): string {
  // masked before it is cut, because a credential cut in half would not be recognised
  const text = (auth ? withoutCredentials(whole, auth) : whole).slice(0, 500);
  const meaning = pullFailures.find(([words]) => words.test(whole))?.[1](auth !== undefined);
  return meaning === undefined ? text : `${meaning} (${text})`;
}

/** Why an image could not be pulled, in words. `where` says where it is missing. */
export function pullFailure(
  whole: string,
  { image, auth, where }: { image: string; auth: Credentials | undefined; where: string },
): StartFailed {
  const why = pullTrouble(whole, auth);
  return new StartFailed(`the image '${image}' is not on ${where} and could not be pulled: ${why}`, "image");
}

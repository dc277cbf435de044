/** What a user can set on a template, in the contract's names. */
export interface TemplateSettings {
  readonly name: string;
  /** A container image, or the absolute path of a handler's directory. */
  readonly imageName: string;
  readonly category: "NVIDIA" | "AMD" | "CPU";
  readonly containerDiskInGb: number;
  readonly containerRegistryAuthId?: string;
  readonly dockerEntrypoint: readonly string[];
  readonly dockerStartCmd: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly isPublic: boolean;
  readonly isServerless: boolean;
  readonly ports: readonly string[];
  readonly readme: string;
  readonly volumeInGb: number;
  readonly volumeMountPath: string;
  /** Whether a user has asked for this path: mounting the default unasked would hide what an image has there. */
  readonly isMountPathGiven?: true;
  /** Whether it was made with an endpoint, with which it is deleted. */
  readonly isInline?: true;
}

export interface Template {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly settings: TemplateSettings;
}

/** The settings of a template unless given. */
export const templateDefaults = {
  category: "NVIDIA",
  containerDiskInGb: 50,
  dockerEntrypoint: [],
  dockerStartCmd: [],
  env: {},
  isPublic: false,
  isServerless: false,
  ports: ["8888/http", "22/tcp"],
  readme: "",
  volumeInGb: 20,
  volumeMountPath: "/workspace",
} as const satisfies Partial<TemplateSettings>;

/** Whether an image reference names a directory of this machine rather than a container image. */
export const isPath = (imageName: string): boolean =>
  /^(file:|\/|\.\/|\.\.\/|~\/)/.test(imageName) || imageName === "." || imageName === "..";

/** What a worker is made from: a directory of its host, or a container image. */
export type Source = "directory" | "image";
export const sourceOf = (imageName: string): Source => (isPath(imageName) ? "directory" : "image");

/** Whether an image reference names a handler's file; its directory, or an image, is needed. */
export const namesHandler = (imageName: string): boolean =>
  /(^|[/:])handler\.(ts|js|mjs|py)$|\.(py|mjs|cjs|ts)$/.test(imageName);

const inPlace: ReadonlySet<string> = new Set(["name", "readme", "isPublic", "isServerless", "isInline", "category"]);

/** Whether a save changes what workers are made from. */
export const changesWorkers = (before: TemplateSettings, after: TemplateSettings): boolean =>
  (Object.keys({ ...before, ...after }) as (keyof TemplateSettings)[]).some(
    (field) => !inPlace.has(field) && JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  );

/**
 * Splits a command string into words as a shell would, without a shell: blanks separate, quotes and backslashes join.
 * `serve --greet "hello world"` gives three words. An unclosed quote runs to the end. No
 * more than `wordsMax` words are read.
 */
export function splitCommand(command: string, wordsMax = Number.POSITIVE_INFINITY): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < command.length && words.length < wordsMax; at++) {
    const char = command[at]!;
    if (quote) {
      if (char === quote) quote = undefined;
      else if (char === "\\" && quote === '"' && /["\\$`]/.test(command[at + 1] ?? "")) word += command[++at]!;
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (char === "\\" && at + 1 < command.length) {
      word = (word ?? "") + command[++at]!;
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (word !== undefined && words.length < wordsMax) words.push(word);
  return words;
}

/** The string that {@link splitCommand} splits into these words again. */
export const joinCommand = (words: readonly string[]): string =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");

/** A line of a worker's output, with what it says about itself. */
export interface WorkerLine {
  readonly atUs: number;
  readonly text: string;
  readonly level?: string;
  readonly message?: string;
}

const ofTheSdk = /^(Started\.|Finished\.|Jobs in (queue|progress): \d+|Kill worker\.|Captured Handler Exception)$/;
/** The module that a Python handler imports and that is not installed. */
export const missingModule = (text: string): string | undefined =>
  /^ModuleNotFoundError: No module named '([\w.]+)'/.exec(text)?.[1]?.split(".")[0];

/** Packages that are not called as the modules that they bring. */
const packagesOf: Readonly<Record<string, string>> = {
  bs4: "beautifulsoup4",
  cv2: "opencv-python-headless",
  dotenv: "python-dotenv",
  fitz: "PyMuPDF",
  PIL: "Pillow",
  skimage: "scikit-image",
  sklearn: "scikit-learn",
  yaml: "PyYAML",
};
/** The package that brings a module. */
export const packageOf = (module: string): string => packagesOf[module] ?? module;

/** How our worker's line about a failed job ends. */
const failureEnd = ',"outcome":"FAILED"}';
const sdkBanner = /^--- Starting Serverless Worker \|/;

/**
 * What a person sees of a worker's line; undefined for what its SDK reports on its own: the terminal says that better.
 */
export function shownText({ text, message, level }: WorkerLine): string | undefined {
  if (sdkBanner.test(text)) return undefined;
  if (message === undefined) return text;
  if (level === "DEBUG" || ofTheSdk.test(message)) return undefined;
  if (text.endsWith(failureEnd)) return undefined;
  if (message.includes('"error_traceback"') && message.includes('"runpod_version"')) return undefined;
  return message;
}

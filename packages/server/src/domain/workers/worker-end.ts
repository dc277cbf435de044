import type { Exit, ExitCause, Worker } from "./worker.js";

/** Messages of frameworks and drivers about a GPU that is missing or unusable. */
const gpuComplaints = [
  /found no nvidia driver/i,
  /no cuda gpus? (are|is) available/i,
  /no cuda-capable device/i,
  /torch not compiled with cuda/i,
  /cuda driver version is insufficient/i,
  /cuda.{0,40}(not available|unavailable|initialization error|unknown error)/i,
  /cuinit|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE/,
  /could not load.{0,40}(libcuda|libcudart|libnvidia)/i,
  /(libcuda|libnvidia-ml)\.so.{0,80}no such file/i,
  /no gpu (was |were )?(found|detected|available)/i,
];

const causeWords: Readonly<Record<ExitCause, string>> = {
  image: "its image cannot be run",
  memory: "as the system does where memory runs out",
  gpu: "as it found no GPU that it could use",
  start: "",
  host: "",
};

/** What the stock Python package prints first, which explains nothing. */
const sdkBanner = /^--- Starting Serverless Worker \|[^\n]*$/m;

/**
 * How a worker ended, in words, with its last lines if they explain it, and the likely cause. `lines`: the last ones of
 * a worker that failed at start, or empty.
 */
export function endOf(worker: Worker, exit: Exit, lines: string): { readonly how: string; readonly exit: Exit } {
  const tail = lines.replace(sdkBanner, "").trimStart();
  const isOurs = worker.killAt !== undefined || worker.wanted === "stopped";
  const cause = exit.cause ?? causeOf(exit, tail, isOurs);
  const plain =
    exit.note ??
    (exit.signal === undefined
      ? byCode(exit.code, isOurs || worker.readyAt !== undefined)
      : `it was ended by ${exit.signal}`);
  const words = cause === undefined || exit.cause !== undefined ? "" : causeWords[cause];
  const how = words === "" ? plain : `${plain}, ${words}`;
  const note = tail === "" ? how : `${how}: ${tail}${lackOf(tail)}`;
  return { how, exit: { ...exit, note, ...(cause === undefined ? {} : { cause }) } };
}

function byCode(code: number | undefined, isExplained: boolean): string {
  const words = `it ended with exit code ${code ?? "unknown"}`;
  // a Python file that only defines its handler runs to its end
  return code === 0 && !isExplained ? `${words} before it was ready; ${servesNothing}` : words;
}

const servesNothing = 'a handler in Python ends with runpod.serverless.start({"handler": handler})';

/** What helps where a Python handler imports what is not installed: the last line names it. */
function lackOf(tail: string): string {
  const isLacking = /^ModuleNotFoundError: No module named '[\w.]+'$/.test(tail.trimEnd().split("\n").at(-1) ?? "");
  return isLacking ? `; ${installs}` : "";
}

const installs =
  "name its package in requirements.txt and deploy the folder with millrace deploy, which installs it; an image needs it built in";

function causeOf({ code, signal }: Exit, tail: string, isOurs: boolean): ExitCause | undefined {
  if (!isOurs && (signal === "SIGKILL" || code === 137)) return "memory";
  if (tail !== "" && gpuComplaints.some((complaint) => complaint.test(tail))) return "gpu";
  return tail !== "" && code !== 0 && !isOurs ? "start" : undefined;
}

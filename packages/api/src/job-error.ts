/** A job's error as people read it: a sentence, and the traceback or stack below it. */
export interface JobError {
  readonly summary: string;
  readonly trace: readonly string[];
}

/** Reads what a worker said: plain text with a stack, or the stock Python package's JSON. */
export function jobErrorOf(said: string): JobError {
  const { error_type: type, error_message: message, error_traceback: traceback } = objectOf(said);
  if (typeof traceback !== "string") {
    const [summary = "", ...trace] = said.trimEnd().split("\n");
    return { summary, trace };
  }
  const name = /'(?:\w+\.)*(\w+)'/.exec(String(type))?.[1] ?? String(type);
  const lines = traceback.trimEnd().split("\n");
  return { summary: `${name}: ${message}`, trace: ownFrames(lines) };
}

function objectOf(said: string): Record<string, unknown> {
  if (!said.startsWith("{")) return {};
  try {
    return JSON.parse(said) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** A traceback without the frames of the package that called the handler, which no user can mend. */
function ownFrames(lines: readonly string[]): string[] {
  const frames: string[][] = [];
  for (const line of lines) {
    if (/^ {2}File /.test(line) || frames.length === 0 || !line.startsWith(" ")) frames.push([line]);
    else frames.at(-1)?.push(line);
  }
  const own = frames.filter(([head = ""]) => !/^ {2}File ".*\/runpod\/serverless\//.test(head));
  return own.flat();
}

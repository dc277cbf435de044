import { join } from "node:path";
import type { HealthBody, StatusBody } from "@millrace/api";
import { called, shellWord } from "../called.js";
import { type Calls, openCalls } from "../calls.js";
import { type Env, readContexts } from "../contexts.js";
import { type Exit, exits } from "../exit.js";
import { outputText, untilEnd } from "../jobs.js";
import type { Terminal } from "../output/terminal.js";
import { saveByName } from "../saved.js";
import type { Tools } from "../tools.js";
import { readChecks, runChecks } from "./checks.js";
import { type Engine, startEngine } from "./engine.js";
import { type HandlerFile, startCommand } from "./handler.js";
import { findPython, isNeedsFile, type PythonFound } from "./python.js";
import { filesInWords, isCode, Noise, watchFolder } from "./watch.js";

export interface DevOptions {
  readonly port: number | undefined;
  readonly workers: number;
  readonly isVerbose: boolean;
  readonly env: Readonly<Record<string, string>>;
  /** One job to run, instead of waiting for requests. */
  readonly input: object | undefined;
  /** A folder of checks to run, instead of waiting for requests. */
  readonly test: string | undefined;
}

/** Serves one handler on an engine of its own, until it is interrupted or has done what it was asked for. */
export async function dev(tools: Tools, terminal: Terminal, handler: HandlerFile, options: DevOptions): Promise<Exit> {
  const checks = options.test === undefined ? undefined : readChecks(options.test);
  const isOnce = options.input !== undefined || checks !== undefined;
  const interrupted = new Promise<Exit>((done) =>
    tools.interrupted.addEventListener("abort", () => done(isOnce ? exits.interrupted : exits.done)),
  );
  // first of all: what is saved while the rest starts is not missed
  const watching = isOnce
    ? undefined
    : await watchFolder(handler.folder, ({ message }) => terminal.say(`Saved files may not be noticed: ${message}`));
  const python = handler.isPython ? await findPython(handler, tools.env, terminal.say) : undefined;
  const engine = await startEngine({
    dataDir: join(handler.folder, ".millrace"),
    port: options.port,
    env: tools.env,
    isJson: terminal.isJson,
    isVerbose: options.isVerbose,
    packageAdvice: python?.packageAdvice,
    out: isOnce ? tools.streams.err : tools.streams.out, // what a single run prints is its output alone
    err: tools.streams.err,
  });
  tools.endsItself();
  const calls = openCalls({ url: engine.url, key: engine.key, from: "its data directory" });
  const served = new Served(calls, terminal, { handler, options, python, env: tools.env });
  const submitted: string[] = [];
  const run = async (input: object): Promise<StatusBody> => {
    const { id } = await calls.call<StatusBody>("POST", `/v2/${served.endpoint}/run`, { input });
    submitted.push(id);
    // nobody is there who would mend it
    return untilEnd(calls, terminal, served.endpoint, id, ({ waitReason }) => waitReason === "crash_looping");
  };
  /** Cancels what has not ended: nobody waits for it any more, and it must not run with the next job. */
  const withdraw = () =>
    Promise.allSettled(submitted.map((id) => calls.call("POST", `/v2/${served.endpoint}/cancel/${id}`)));
  async function work(): Promise<Exit> {
    await served.save();
    if (checks) return (await runChecks(checks, terminal, run)) === 0 ? exits.done : exits.failed;
    if (options.input) return showVerdict(terminal, await run(options.input));
    served.present(engine, called(tools.env, handler.folder));
    let last = Promise.resolve(); // an environment that is being made must not be changed by the next save
    watching?.onChange((files) => {
      last = last.then(() => served.replace(files));
    });
    return engine.ended.then((): Exit => exits.failed);
  }
  try {
    return await Promise.race([work(), interrupted]);
  } finally {
    watching?.close();
    await withdraw();
    await engine.stop();
  }
}

/** The error has been shown where it happened. */
function showVerdict(terminal: Terminal, body: StatusBody): Exit {
  const isDone = body.status === "COMPLETED";
  if (isDone || terminal.isJson) terminal.result(body, outputText(body));
  return isDone ? exits.done : exits.failed;
}

/** What is served, and how. */
interface Serving {
  readonly handler: HandlerFile;
  readonly options: DevOptions;
  readonly python: PythonFound | undefined;
  /** The environment that Python is looked for in. */
  readonly env: Env;
}

/** The one endpoint of a `dev` engine. */
class Served {
  readonly #calls: Calls;
  readonly #terminal: Terminal;
  readonly #handler: HandlerFile;
  readonly #options: DevOptions;
  readonly #env: Env;
  #python: PythonFound | undefined;
  #hasHinted = false;
  readonly #noise = new Noise();
  endpoint = "";

  constructor(calls: Calls, terminal: Terminal, { handler, options, python, env }: Serving) {
    this.#calls = calls;
    this.#terminal = terminal;
    this.#handler = handler;
    this.#options = options;
    this.#python = python;
    this.#env = env;
  }

  async save(): Promise<void> {
    const { folder, name } = this.#handler;
    const { endpoint } = await saveByName(this.#calls, name, {
      template: {
        imageName: folder,
        dockerStartCmd: startCommand(this.#handler, this.#python?.python),
        env: this.#options.env,
      },
      endpoint: { workersMin: 0, workersMax: this.#options.workers, idleTimeout: 3_600, scalerValue: 1 },
    });
    this.endpoint = endpoint.id;
  }

  /** Says how to use it. */
  present(engine: Engine, millrace: string): void {
    const { folder, file, name } = this.#handler;
    const words = this.#python ? `${file}, ${this.#python.words}` : file;
    const key = join(folder, ".millrace/api-key");
    const keyIn = `$(cat ${shellWord(key)})`;
    // whoever works with another server has it in the environment or in a context
    const isElsewhere = Boolean(
      this.#env.MILLRACE_API_KEY || this.#env.MILLRACE_URL || readContexts(this.#env).current,
    );
    const here = isElsewhere ? `MILLRACE_URL=${engine.url} MILLRACE_API_KEY="${keyIn}" ` : "";
    const lines = [
      "",
      `  ${this.#terminal.styled("bold", "Millrace")}  ${engine.url}  ${name}  ${words}`,
      "",
      "  In another terminal:",
      `    (cd ${shellWord(folder)} && ${here}${millrace} run ${shellWord(name)} '{"text":"hello"}')`,
      `    curl -s ${engine.url}/v2/${this.endpoint}/runsync -H "Authorization: Bearer ${keyIn}" -d '{"input":{"text":"hello"}}'`,
      "",
      "  A saved file replaces the worker. Ctrl-C ends it; jobs that wait are kept.",
      "",
    ];
    if (this.#terminal.isJson) this.#told("dev.ready", { url: engine.url, endpointId: this.endpoint, name });
    else for (const line of lines) this.#terminal.print(line);
  }

  /** Replaces the worker by one that runs the changed files. */
  async replace(changed: readonly string[]): Promise<void> {
    const { heard: files, silenced } = this.#noise.sift(changed, performance.now());
    if (silenced.length > 0) {
      const words = `${filesInWords(silenced)} changes again and again, as a file does that a program writes`;
      this.#event("!", "yellow", `${words}: from now on its changes do not count`);
    }
    if (files.length === 0) return;
    try {
      if (this.#handler.isPython && files.some(isNeedsFile)) {
        this.#python = await findPython(this.#handler, this.#env, (text) => this.#event("·", "dim", text));
        await this.save();
      }
      const { jobs } = await this.#calls.call<HealthBody>("GET", `/v2/${this.endpoint}/health`);
      // a handler may write its results here, and its job would begin again for ever
      const isNow = files.some(isCode);
      await this.#calls.call("POST", `/v1/endpoints/${this.endpoint}/restart${isNow ? "?now=true" : ""}`);
      const kept =
        jobs.inQueue === 0 ? "" : `; ${jobs.inQueue} queued ${jobs.inQueue === 1 ? "job is" : "jobs are"} kept`;
      const busy = this.#replacedWhileBusy(jobs.inProgress, isNow);
      this.#event("!", "yellow", `${filesInWords(files)} changed: the worker is replaced${busy}${kept}`);
    } catch (error) {
      this.#event("!", "yellow", `${filesInWords(files)} changed, but: ${(error as Error).message}`);
    }
  }

  /** What becomes of the jobs that run while a worker is replaced. */
  #replacedWhileBusy(running: number, isNow: boolean): string {
    if (running === 0) return "";
    if (isNow) return running === 1 ? ", and its job begins again" : ", and the running jobs begin again";
    const hint = this.#hasHinted ? "" : " (files that the handler writes are better kept outside its folder)";
    this.#hasHinted = true;
    return `${running === 1 ? " after its job" : " after the running jobs"}${hint}`;
  }

  /** An event among those of the engine, for programs. */
  #told(event: string, fields: object): void {
    this.#terminal.print(JSON.stringify({ level: "info", time: Date.now(), event, ...fields }));
  }

  /** A line among those of the engine. */
  #event(mark: string, style: "dim" | "yellow", text: string): void {
    if (this.#terminal.isJson) {
      this.#told("dev.changed", { msg: text });
      return;
    }
    const time = this.#terminal.styled("dim", new Date().toTimeString().slice(0, 8));
    const { name } = this.#handler;
    const wide = this.#terminal.columns < 80 ? 10 : 16; // as the engine's lines are
    const column = (name.length > wide ? `${name.slice(0, wide - 1)}…` : name).padEnd(wide);
    this.#terminal.print(`  ${time}  ${column} ${this.#terminal.styled(style, `${mark} ${text}`)}`);
  }
}

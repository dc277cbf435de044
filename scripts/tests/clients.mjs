// Stock clients that tests speak to, installed under .cache in versions that these tests know. It takes about a minute,
// mostly of downloads, so `npm test` begins its other tests meanwhile.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cache, locked, readText, run, SetUpFailure } from "../set-up.mjs";

const venv = join(cache, "venv");
const newerVenv = join(cache, "newer-venv");
const machineVenv = join(cache, "machine-venv");
const npmFolder = join(cache, "clients");

/** The clients, by the need of the tests that speak to them. */
const clients = {
  // the stock Python SDKs, against which compatibility is tested
  python: pythonClients(venv, ["runpod==1.12.0", "openai==3.54.0"]),
  // packages that conflict with those
  newerPython: pythonClients(newerVenv, ["runpod==2.0.0rc2", "runpod-flash==1.21.0"]),
  // what only `test:machine` speaks to: the fuzzer of the OpenAPI documents, and LangChain
  machinePython: pythonClients(machineVenv, ["schemathesis==4.32.5", "langchain-runpod==0.2.0"]),
  // programs of their own, apart from the packages of this repository
  clients: npmClients([
    ...["@runpod/mcp-server@4.0.0", "mcp-server-3@npm:@runpod/mcp-server@3.4.0"],
    ...["@runpod/ai-sdk-provider@1.4.0", "ai@7.0.173"],
  ]),
};

/** What tests find the clients by. */
export const clientsEnv = {
  MILLRACE_TEST_VENV: venv,
  MILLRACE_TEST_NEWER_VENV: newerVenv,
  MILLRACE_TEST_MACHINE_VENV: machineVenv,
  MILLRACE_TEST_CLIENTS: npmFolder,
};

/** Whether a file with these needs speaks to one of the clients. */
export const speaksToClients = (needs) => Object.keys(clients).some((need) => needs.has(need));

/** Names the file that says how an installation under way has ended. */
const underWay = "MILLRACE_TEST_CLIENTS_STATE";
const installedWord = "installed";
const pollMs = 200;

/**
 * Begins to install the clients of these needs that have changed since the last time; tests wait for them with
 * `clientsInstalled`. Resolves with a function that waits for the end, and resolves with the failure if there was one.
 */
export async function beginClients(needs) {
  const wanted = Object.keys(clients).flatMap((need) => (needs.has(need) ? [clients[need]] : []));
  if ((await lackingOf(wanted)).length === 0) return async () => undefined;
  console.error("Installing the stock clients that some tests speak to; what needs none goes on meanwhile.");
  const state = join(cache, `clients-${process.pid}.state`);
  rmSync(state, { force: true }); // of an earlier process with this id, which was interrupted
  process.env[underWay] = state;
  const ended = locked(() => install(wanted), "clients").then(
    () => writeFileSync(state, installedWord),
    (failure) => {
      const words = [failure.message, failure.output].join("\n");
      writeFileSync(state, words);
      return words;
    },
  );
  return async () => {
    const failure = await ended;
    rmSync(state, { force: true });
    return failure;
  };
}

/** Resolves once an installation that is under way has ended; rejects if it failed. */
export async function clientsInstalled() {
  const state = process.env[underWay];
  if (state === undefined) return;
  const [, installer] = /(\d+)\.state$/.exec(state);
  let word = readText(state);
  for (; !word; word = readText(state)) {
    if (existsSync("/proc") && !existsSync(`/proc/${installer}`))
      throw new Error(`Process ${installer}, which installed the stock clients, has ended.`);
    await sleep(pollMs);
  }
  if (word !== installedWord) throw new Error(word);
}

async function install(wanted) {
  const some = await lackingOf(wanted);
  const results = await Promise.all(some.map((client) => client.install())); // at once: much of it is waiting
  const failures = results.flatMap(({ code, output }, n) => (code === 0 ? [] : [`${some[n].names}: ${output}`]));
  if (failures.length > 0)
    throw new SetUpFailure("The stock clients for the tests could not be installed:", failures.join("\n"));
}

const lackingOf = async (wanted) =>
  (await Promise.all(wanted.map(async (client) => ((await client.isThere()) ? [] : [client])))).flat();

/** Packages of Python in an environment of their own. */
function pythonClients(folder, packages) {
  const stamp = join(folder, ".millrace-stamp");
  const stampWanted = async () => {
    const python = await run("python3", ["-c", "import sys; print(sys.base_prefix, sys.version)"]);
    // A virtual environment holds absolute paths: a clone that was moved needs a new one.
    return [folder, python.output.trim(), ...packages].join("\n");
  };
  return {
    names: packages.join(", "),
    isThere: async () => readText(stamp) === (await stampWanted()),
    async install() {
      rmSync(folder, { recursive: true, force: true });
      const made = await run("python3", ["-m", "venv", folder]);
      if (made.code !== 0) return made;
      const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages];
      const installed = await run(join(folder, "bin", "python"), pip);
      if (installed.code === 0) writeFileSync(stamp, await stampWanted());
      return installed;
    },
  };
}

/** Packages of npm in a folder of their own. */
function npmClients(packages) {
  const stamp = join(npmFolder, ".millrace-stamp");
  return {
    names: packages.join(", "),
    isThere: () => readText(stamp) === packages.join("\n"),
    async install() {
      rmSync(npmFolder, { recursive: true, force: true });
      mkdirSync(npmFolder, { recursive: true });
      writeFileSync(join(npmFolder, "package.json"), '{ "private": true }\n'); // otherwise npm looks for one further up
      const args = [
        "install",
        "--prefix",
        npmFolder,
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
      ];
      const installed = await run("npm", [...args, ...packages]);
      if (installed.code === 0) writeFileSync(stamp, packages.join("\n"));
      return installed;
    },
  };
}

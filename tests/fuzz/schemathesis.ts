import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { schemathesis } from "../compat/environments/machine-python.js";
import type { TestServer } from "../harness.js";

/** The settings of one run. */
export interface Fuzzing {
  readonly document: "/v1/openapi.json" | "/v2/openapi.json" | "/graphql";
  readonly seed: number;
  /** Only operations whose paths match, or do not match. */
  readonly only?: string;
  readonly without?: string;
  /** Test cases for each operation and phase. */
  readonly examples: number;
  /** Values to use for a parameter most of the time, by its place and name (`path.jobId`). */
  readonly known: Readonly<Record<string, readonly string[]>>;
  /** Values to use for a parameter always. */
  readonly fixed?: Readonly<Record<string, string>>;
  /** What no deletion may name, and what it deletes instead. */
  readonly kept?: Readonly<Record<string, readonly string[]>>;
  /** What belongs together: with this value in a path its other parameters have these. */
  readonly pairs?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** An endpoint with a worker: it is read and restarted, and `instead` is changed. */
  readonly live?: Live;
  /** The address for every webhook that the service would accept. */
  readonly webhook: string;
}

export interface Live {
  readonly endpoint: string;
  /** Where it names a worker, calls name one that lives then. */
  readonly worker: string;
  readonly instead: string;
}

export interface Verdict {
  readonly code: number;
  readonly output: string;
  /** How often each operation was answered with which status; over GraphQL, OK or which code. */
  readonly tally: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** What only one kind of document needs: hooks of its own, and checks of it that do not hold here. */
const kindOf = ({ document }: Fuzzing) =>
  document === "/graphql"
    ? { hooks: "graphql_hooks", unheld: "not_a_server_error" } // to it, every refusal is one
    : { hooks: "hooks", unheld: "positive_data_acceptance" }; // hooks.py has its own

/** Runs Schemathesis on a document of a running server; resolves with its verdict. */
export async function fuzz(server: TestServer, asked: Fuzzing): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-fuzz-"));
  const config = join(folder, "schemathesis.toml");
  writeFileSync(config, configuration(server, asked));
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    FUZZ_WEBHOOK: asked.webhook,
    FUZZ_KEPT: JSON.stringify(asked.kept ?? {}),
    FUZZ_TALLY: join(folder, "tally.json"),
    FUZZ_PAIRS: JSON.stringify(asked.pairs ?? {}),
    FUZZ_LIVE: JSON.stringify(asked.live ? { ...asked.live, url: server.url, key: server.key } : {}),
    FUZZ_KNOWN: JSON.stringify(asked.known),
    SCHEMATHESIS_HOOKS: kindOf(asked).hooks,
    PYTHONPATH: import.meta.dirname,
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const only = asked.only === undefined ? [] : ["--include-path-regex", asked.only];
  const without = asked.without === undefined ? [] : ["--exclude-path-regex", asked.without];
  const args = ["--no-color", "--config-file", config, "run", ...only, ...without, server.url + asked.document];
  const options = { env, cwd: folder, timeout: 600_000, maxBuffer: 64 * 2 ** 20 };
  try {
    return await new Promise((done) => {
      execFile(schemathesis(), args, options, (error, stdout, stderr) => {
        const tally = existsSync(env.FUZZ_TALLY) ? JSON.parse(readFileSync(env.FUZZ_TALLY, "utf8")) : {};
        done({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr, tally });
      });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function configuration(server: TestServer, asked: Fuzzing): string {
  const isGraphql = asked.document === "/graphql";
  return `
seed = ${asked.seed}
base-url = ${JSON.stringify(isGraphql ? server.url + asked.document : server.url)}
${isGraphql ? `headers = { Authorization = "Bearer ${server.key}" }` : ""}
request-timeout = 30
continue-on-failure = true
warnings = false

[generation]
max-examples = ${asked.examples}
database = "none"

[checks.${kindOf(asked).unheld}]
enabled = false
${isGraphql ? "" : openapi(server, asked)}`;
}

/** The key, and the values of parameters: a query has none, and gets its values from its hooks. */
function openapi(server: TestServer, { known, fixed = {} }: Fuzzing): string {
  const names = Object.keys(known);
  const dictionaries = names.map((name, n) => `[dictionaries.known${n}]\nvalues = ${JSON.stringify(known[name])}\n`);
  const bindings = names.map((name, n) => `"${name}" = { dictionary = "known${n}", probability = 0.85 }\n`);
  return `
[auth.openapi.ApiKey]
bearer = ${JSON.stringify(server.key)}

${dictionaries.join("\n")}
[parameters]
${bindings.join("")}${Object.entries(fixed)
  .map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}\n`)
  .join("")}`;
}

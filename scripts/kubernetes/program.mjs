// Kubernetes for tests: one program of all its parts and its command line.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SetUpFailure } from "../set-up.mjs";
import { GoProgram, home } from "./go.mjs";

/** From 1.35 on a kubelet refuses machines with version 1 of control groups. */
export const version = "1.34.4";
const oldestGo = "1.24.0";

const source = join(import.meta.dirname, "kube.go");
const fingerprint = createHash("sha256")
  .update(`${version} ${readFileSync(source)}`)
  .digest("hex")
  .slice(0, 12);

/** About 9 minutes of one core the first time. */
export const program = new GoProgram("kube", fingerprint, async (go, made) => {
  const folder = join(home, `source-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    cpSync(source, join(folder, "main.go"));
    writeFileSync(join(folder, "go.mod"), await moduleFile(go));
    const [major, minor] = version.split(".");
    const facts = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
    const named = Object.entries(facts).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
    const flags = ["-C", folder, "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags", ["-s -w", ...named].join(" ")];
    const { code, output } = await go.run(["build", ...flags, "-o", made, "."]);
    if (code !== 0) throw new SetUpFailure("Kubernetes could not be built:", output.slice(-4_000));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Kubernetes' own module file points its parts at folders beside it; as modules they have versions of their own. */
async function moduleFile(go) {
  const { code, output } = await go.run(["mod", "download", "-json", `k8s.io/kubernetes@v${version}`]);
  if (code !== 0) throw new SetUpFailure("The sources of Kubernetes could not be fetched:", output);
  const own = readFileSync(JSON.parse(output).GoMod, "utf8");
  const parts = [...own.matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging/gm)].map(([, part]) => part);
  const ofParts = parts
    .filter((part) => !part.includes("/sample-"))
    .map((part) => `\t${part} => ${part} v0${version.slice(1)}`);
  return [
    "module millrace.test/kube",
    "",
    `go ${oldestGo}`,
    "",
    `require k8s.io/kubernetes v${version}`,
    "",
    "replace (",
    ...ofParts,
    ")",
    "",
  ].join("\n");
}

/** Resolves with the program's path once it is built. */
export const builtProgram = () => program.built();

// Helm for tests, and what they ask of it: the chart's manifests.
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, SetUpFailure } from "../set-up.mjs";
import { GoProgram } from "./go.mjs";
import { version as kubernetesVersion } from "./program.mjs";

const version = "4.3.1";

/** About 4 minutes of one core the first time. */
export const helm = new GoProgram("helm", version, async (go, made) => {
  const folder = `${made}.bin`;
  const flags = ["-trimpath", "-ldflags", "-s -w"];
  try {
    const { code, output } = await go.run(["install", ...flags, `helm.sh/helm/v4/cmd/helm@v${version}`], {
      GOBIN: folder,
    });
    if (code !== 0) throw new SetUpFailure("Helm could not be built:", output.slice(-4_000));
    renameSync(join(folder, "helm"), made);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Resolves with the program's path once it is built. */
export const builtHelm = () => helm.built();

/** The chart's folder. */
export const chart = join(root, "deploy/helm/millrace");

/** What Helm is asked for the chart's manifests: of a release by the usual names, for the cluster of the tests. */
export const templateArgs = (...values) => [
  ...["template", "millrace", chart, "--namespace", "millrace", "--kube-version", kubernetesVersion],
  ...values,
];

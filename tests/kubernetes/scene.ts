import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePythonImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { venv } from "../compat/stock.js";
import { freePort, startServer, type TestServer } from "../harness.js";

/** A cluster takes seconds to start, and minutes before that if its program is still being built. */
export const clusterStartMs = 1_200_000;

/** The namespace of workers in these tests. */
export const namespace = "workers";

/** Starts a cluster whose node has an image with the stock Python worker and a handler. */
export async function pythonCluster(
  image: string,
  handler: string,
  settings: NonNullable<Parameters<typeof startCluster>[0]>["settings"] = {},
): Promise<TestCluster> {
  const cluster = await startCluster({ settings });
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  writeFileSync(join(folder, "handler.py"), handler);
  makePythonImage(cluster, image, { handler: join(folder, "handler.py"), venv: venv(), programs: ["/bin/sh"] });
  rmSync(folder, { recursive: true });
  cluster.kubectl("create", "namespace", namespace);
  return cluster;
}

/** A folder with commands for a PATH, by name. */
export function commandsOf(cluster: TestCluster, commands: Readonly<Record<string, string>>): string {
  const folder = join(cluster.home, "commands");
  mkdirSync(folder);
  for (const [name, command] of Object.entries(commands))
    writeFileSync(join(folder, name), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
  return folder;
}

/** The settings of a server whose workers run in a cluster, which reaches it at the node's gateway. */
export async function clusterSettings(cluster: TestCluster): Promise<Record<string, string>> {
  const port = String(await freePort());
  return {
    KUBECONFIG: cluster.kubeconfig,
    MILLRACE_KUBERNETES: "on",
    MILLRACE_KUBERNETES_NAMESPACE: namespace,
    MILLRACE_CONTAINERS: "off",
    MILLRACE_HOST: "0.0.0.0",
    MILLRACE_PORT: port,
    MILLRACE_WORKER_URL: `http://${cluster.gateway}:${port}`,
    MILLRACE_STOP_GRACE: "5",
  };
}

export const startClusterServer = async (
  cluster: TestCluster,
  settings: Record<string, string> = {},
): Promise<TestServer> => startServer({ ...(await clusterSettings(cluster)), ...settings });

/** The names of pods in the namespace, with their phases. */
export function podsIn(cluster: TestCluster): string[] {
  const columns = "--output=jsonpath={range .items[*]}{.metadata.name} {.status.phase}{'\\n'}{end}";
  return cluster.kubectl("get", "pods", `--namespace=${namespace}`, columns).split("\n").filter(Boolean);
}

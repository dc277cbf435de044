import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { startCluster, type TestCluster } from "../../../../../scripts/kubernetes/cluster.mjs";
import type { ImageSpec } from "../../provider.js";
import { providerContract } from "../contract.js";
import type { OpenedProvider, Wish } from "../contracts/scene.js";
import { findAccess } from "./api-server/access.js";
import { Cluster } from "./api-server/cluster.js";
import { type KubernetesOptions, KubernetesProvider } from "./kubernetes-provider.js";
import { claimOf } from "./pod.js";

const image = "millrace.test/node:1";
const namespace = "workers";
let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startCluster();
  cluster.makeImage(image, { programs: [process.execPath, "/bin/sh", "/bin/sleep"] });
  cluster.kubectl("create", "namespace", namespace);
  shareDirectory(realpathSync(tmpdir()));
}, 1_200_000);
afterAll(() => cluster?.end());

/** A directory of this machine, as a volume that pods can mount. */
const volumeId = "stage";
function shareDirectory(path: string): void {
  const [name, storage] = [claimOf(volumeId), "1Gi"];
  const modes = { accessModes: ["ReadWriteMany"], storageClassName: "" };
  cluster.apply(
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: { ...modes, capacity: { storage }, hostPath: { path }, claimRef: { name, namespace } },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name, namespace },
      spec: { ...modes, volumeName: name, resources: { requests: { storage } } },
    },
  );
}

async function open(): Promise<OpenedProvider> {
  const logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
  const launch = ({ workerId, command, env }: Wish): ImageSpec => ({
    workerId,
    from: { image },
    entrypoint: [],
    command,
    env,
    mounts: [{ volumeId, path: "", target: realpathSync(tmpdir()) }],
  });
  const make = (more: Partial<KubernetesOptions> = {}) =>
    new KubernetesProvider({
      cluster: new Cluster(findAccess({ KUBECONFIG: cluster.kubeconfig }, undefined)),
      namespace,
      logsDir,
      installation: "contract",
      graceMs: 10_000,
      gpuResource: "nvidia.com/gpu",
      gpuLabel: "nvidia.com/gpu.product",
      additions: {},
      pullMs: 1_000,
      freezes: true,
      ...more,
    });
  let provider = make();
  return {
    provider,
    launch,
    unstartable: [
      [
        /'no\/such:1' is not on its node and could not be pulled: /,
        (wish) => ({ ...launch(wish), from: { image: "no/such:1" } }),
      ],
      [/could not be started: .*"\/no\/such"/, (wish) => ({ ...launch(wish), command: ["/no/such"] })],
    ],
    again: async (more) => (provider = make(more)),
    end: async () => {
      await provider.leave();
      cluster.kubectl("delete", "pods,secrets", "--all", `--namespace=${namespace}`, "--grace-period=0", "--force");
      rmSync(logsDir, { recursive: true });
    },
  };
}

providerContract("A pod", open, { mixesPipes: true });

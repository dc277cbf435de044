import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments, parse as parseYaml } from "yaml";
import { readConfig } from "../../packages/server/src/config.js";
import { additionsIn } from "../../packages/server/src/providers/kubernetes/additions.js";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { chart } from "../../scripts/kubernetes/helm.mjs";
import { builtProgram } from "../../scripts/kubernetes/program.mjs";
import { root } from "../harness.js";
import { Helm } from "./helm.js";
import { otherKinds } from "./other-kinds.js";
import { clusterStartMs } from "./scene.js";

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly rules?: unknown;
  // biome-ignore lint/suspicious/noExplicitAny: of many kinds
  readonly spec?: any;
}

/** Everything that the chart can make. */
const everything = {
  replicas: 3,
  settings: { MILLRACE_HOST_NAMES: "millrace.example.com", MILLRACE_START_TIMEOUT: 1_200, MILLRACE_RATE_LIMITS: true },
  env: [{ name: "HTTPS_PROXY", value: "http://192.0.2.1:3128" }],
  image: { repository: "registry.example/me/millrace", tag: "1", pullSecrets: ["registry"] },
  workers: {
    freeze: true,
    pod: {
      metadata: { labels: { "kueue.x-k8s.io/queue-name": "workers" } },
      spec: { nodeSelector: { pool: "workers" }, tolerations: [{ key: "nvidia.com/gpu", operator: "Exists" }] },
    },
    podClasses: {
      spot: { spec: { nodeSelector: { capacity: "spot" } } },
      "123": { metadata: { labels: { of: "class" } } },
    },
    networkPolicy: { from: [{ podSelector: {} }], to: [{ podSelector: {} }], except: ["10.0.0.1/32", "fd00::1/128"] },
  },
  service: { type: "LoadBalancer", port: 80, annotations: { of: "service" } },
  ingress: { enabled: true, className: "nginx", annotations: { of: "ingress" }, tlsSecret: "tls" },
  route: { enabled: true, annotations: { of: "route" }, parentRefs: [{ name: "gateway", namespace: "gateways" }] },
  serviceMonitor: { enabled: true, labels: { release: "prometheus" }, keySecret: { name: "metrics-key", key: "key" } },
  networkPolicy: { from: [{ namespaceSelector: {} }] },
  serviceAccount: { annotations: { of: "account" } },
  podLabels: { of: "pod" },
  podAnnotations: { of: "pod" },
  nodeSelector: { pool: "servers" },
  tolerations: [{ key: "servers", operator: "Exists", effect: "NoSchedule" }],
  affinity: { nodeAffinity: {} },
  priorityClassName: "system-cluster-critical",
};

let helm: Helm;
let cluster: TestCluster;
let folder: string;
beforeAll(async () => {
  helm = await Helm.open();
  cluster = await startCluster({ hasNode: false });
  folder = mkdtempSync(join(tmpdir(), "millrace-chart-"));
  writeFileSync(join(folder, "everything.yaml"), JSON.stringify(everything));
  cluster.kubectl("create", "namespace", "millrace");
  cluster.kubectl("create", "namespace", "millrace-workers");
  cluster.apply(...otherKinds);
  await cluster.until("wait", "--for=condition=Established", "crd", "--all", "--timeout=1s");
}, clusterStartMs);
afterAll(async () => {
  helm?.close();
  await cluster?.end();
  if (folder) rmSync(folder, { recursive: true });
});

const all = () => ["--values", join(folder, "everything.yaml")];

function manifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((each) => each.toJS() as Manifest | null)
    .filter((each) => each !== null);
}

/** Asks the API server whether it would take these manifests as they are. */
async function tried(text: string) {
  const args = ["kubectl", `--kubeconfig=${cluster.kubeconfig}`, "apply", "--dry-run=server", "--validate=strict"];
  return spawnSync(await builtProgram(), [...args, "-f", "-"], { input: text, encoding: "utf8" });
}

describe("the chart", () => {
  it("has no fault that Helm finds", () => {
    for (const values of [[], all()]) {
      const { code, text } = helm.run(["lint", "--strict", chart, ...values]);
      expect(code, text).toBe(0);
      expect(text).not.toMatch(/\[(WARNING|ERROR)\]/);
    }
  });

  it("makes what a cluster takes, with the defaults and with everything", async () => {
    for (const values of [[], all()]) {
      const { code, text } = helm.template(...values);
      expect(code, text).toBe(0);
      const { status, stderr, stdout } = await tried(text);
      expect(status, `${stderr}\n${text}`).toBe(0);
      expect(stdout.trim().split("\n")).toHaveLength(manifests(text).length);
      expect(stderr).not.toContain("would violate");
    }
    const kinds = manifests(helm.template(...all()).text).map(({ kind }) => kind);
    expect(kinds).toEqual(expect.arrayContaining(["Ingress", "HTTPRoute", "ServiceMonitor", "PodDisruptionBudget"]));
  });

  it("gives servers valid settings", () => {
    const environment = (...values: string[]) => {
      const deployment = manifests(helm.template(...values).text).find(({ kind }) => kind === "Deployment");
      const { env } = deployment?.spec.template.spec.containers[0] ?? {};
      return Object.fromEntries(
        env.map(({ name, value }: { name: string; value?: string }) => [name, value ?? "10.1.2.3"]),
      );
    };
    const read = (env: Record<string, string>, podIp = "10.1.2.3") =>
      readConfig({
        ...env,
        MILLRACE_SERVER_ADDRESS: env.MILLRACE_SERVER_ADDRESS?.replace("$(POD_IP)", podIp),
        MILLRACE_DATABASE_URL: "postgres://database/millrace",
        MILLRACE_API_KEY: "mr_a_key_for_this_test_alone",
        MILLRACE_SEAL_KEY: "00".repeat(32),
      });
    expect(read(environment())).toMatchObject({
      host: "0.0.0.0",
      workerUrl: "http://millrace.millrace.svc:8000",
      serverAddress: { host: "10.1.2.3", port: 8_000 },
      containers: false,
      localProcesses: false,
      trustProxy: false,
      kubernetes: { namespace: "millrace-workers" },
    });
    expect(read(environment(), "fd00::7")).toMatchObject({ serverAddress: { host: "fd00::7", port: 8_000 } });
    expect(read(environment("--set", "settings.MILLRACE_HOST=::"))).toMatchObject({ host: "::" });
    const full = environment(...all());
    expect(full).toMatchObject({ MILLRACE_RATE_LIMITS: "on", MILLRACE_START_TIMEOUT: "1200" });
    expect(read(full)).toMatchObject({ workerUrl: "http://millrace.millrace.svc:80", trustProxy: true });
    expect(read(full).kubernetes).toMatchObject({ freezes: true, podFile: "/etc/millrace/pod.yaml" });
  });

  it("takes names that look like numbers, and no two releases' names clash", async () => {
    const odd = [
      "--set-string",
      "secret=123",
      "--set-string",
      "workers.namespace=456",
      "--set",
      "fullnameOverride=a-7",
    ];
    const { code, text } = helm.run([
      "template",
      "789",
      chart,
      "--namespace",
      "millrace",
      "--kube-version",
      "1.34.0",
      ...odd,
    ]);
    expect(code, text).toBe(0);
    cluster.kubectl("create", "namespace", "456");
    const { status, stderr } = await tried(text);
    expect(status, stderr).toBe(0);
    const far = (namespace: string, name: string) =>
      manifests(helm.run(["template", name, chart, "--namespace", namespace, "--kube-version", "1.34.0"]).text)
        .filter(({ metadata }) => metadata.namespace !== namespace)
        .filter(({ kind }) => kind !== "Namespace")
        .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    const both = [...far("a", "b-millrace"), ...far("a-b", "millrace")];
    expect(new Set(both).size).toBe(both.length);
  });

  it("hands on what every worker's pod has", () => {
    const { data } = manifests(helm.template(...all()).text).find(({ kind }) => kind === "ConfigMap") ?? {};
    const path = join(folder, "pod.yaml");
    writeFileSync(path, data?.["pod.yaml"] ?? "");
    const { all: common, classes } = additionsIn(path);
    expect(common).toEqual(everything.workers.pod);
    expect([...classes.keys()].sort()).toEqual(["123", "spot"]);
    expect(classes.get("spot")?.spec?.nodeSelector).toEqual({ pool: "workers", capacity: "spot" });
  });

  it.each([
    ["replicas=0", /replicas.*(minimum|greater)/s],
    ["replica=2", /additional properties.*replica/s],
    ["settings.MILLRACE_API_KEY=mr_key", /MILLRACE_API_KEY/],
    ["settings.OTHER=1", /OTHER/],
    ["route.enabled=true", /parentRefs/],
    ["workers.namespace=Workers", /namespace/],
    ["workers.namespace=millrace", /must not be the release's own/],
    ["image.tag=1", /tag.*want string/],
    ["settings.MILLRACE_KUBERNETES_FREEZE=off", /MILLRACE_KUBERNETES_FREEZE/],
    ["workers.kubeconfig.secret=clusters", /contexts/],
    ["settings.MILLRACE_KUBERNETES_CONTEXT=rack", /MILLRACE_KUBERNETES_CONTEXT/],
    ["podLabels.app\\.kubernetes\\.io/name=other", /invalid propertyName 'app.kubernetes.io.name'/],
    ["nameOverride=Other Name", /nameOverride/],
    ["ingress.hosts=null", /hosts/],
  ])("refuses %s, and says where the fault is", (value, words) => {
    const { code, text } = helm.template("--set", value);
    expect(code).not.toBe(0);
    expect(text).toMatch(words);
  });
});

it("A release from before a value was there gets its default", () => {
  const { code, text } = helm.template("--set", "workers.kubeconfig=null");
  expect(code, text).toBe(0);
  expect(text).toContain("MILLRACE_KUBERNETES_NAMESPACE");
});

describe("deploy/kubernetes", () => {
  const text = (name: string) => readFileSync(join(root, "deploy/kubernetes", name), "utf8");

  it("has the chart's manifests, which `node scripts/kubernetes/manifests.mjs` writes", async () => {
    const rendered = spawnSync(process.execPath, ["scripts/kubernetes/manifests.mjs", "--print"], {
      cwd: root,
      encoding: "utf8",
    });
    expect(rendered.stdout, rendered.stderr).toBe(text("millrace.yaml"));
    expect((await tried(text("millrace.yaml"))).status).toBe(0);
  });

  it("gives a server outside the cluster the rights that the chart gives to one inside, and that to reach its pods", () => {
    const rulesIn = (manifest: string, kind: string): { resources: string[] }[] =>
      manifests(manifest).find((each) => each.kind === kind)?.rules as { resources: string[] }[];
    const ofChart = helm.template().text;
    const isToReach = ({ resources }: { resources: string[] }) => resources.includes("pods/portforward");
    for (const kind of ["Role", "ClusterRole"])
      expect(rulesIn(text("rights.yaml"), kind).filter((each) => !isToReach(each))).toEqual(rulesIn(ofChart, kind));
    expect(rulesIn(text("rights.yaml"), "Role").filter(isToReach)).toHaveLength(1);
  });

  it("has the version of the service", () => {
    const { version } = JSON.parse(readFileSync(join(root, "packages/server/package.json"), "utf8"));
    expect(parseYaml(readFileSync(join(chart, "Chart.yaml"), "utf8"))).toMatchObject({ version, appVersion: version });
  });
});

import { describe, expect, it } from "vitest";
import type { ImageSpec } from "../../provider.js";
import { claimOf, environmentOf, type PodSettings, podOf, secretsOf } from "./pod.js";

const spec: ImageSpec = {
  workerId: "worker00000001",
  from: { image: "registry.example:5000/me/worker:1" },
  entrypoint: [],
  command: [],
  env: { RUNPOD_AI_API_KEY: "hush" },
  mounts: [],
};
const settings: PodSettings = {
  installation: "one",
  graceMs: 2_500,
  gpuResource: "nvidia.com/gpu",
  gpuLabel: "nvidia.com/gpu.product",
  additions: {},
};
const container = (of: Partial<ImageSpec>) => podOf({ ...spec, ...of }, settings).spec?.containers[0];

describe("A worker's pod", () => {
  it("holds none of its environment, which is in a secret that goes with it", () => {
    const pod = podOf(spec, settings);
    expect(JSON.stringify(pod)).not.toContain("hush");
    const made = { ...pod, metadata: { ...pod.metadata, uid: "u1" } };
    const [secret, ...others] = secretsOf(spec, made, settings);
    expect(others).toEqual([]);
    expect(secret).toMatchObject({
      stringData: spec.env,
      metadata: { name: environmentOf(pod.spec), ownerReferences: [{ kind: "Pod", uid: "u1" }] },
    });
  });

  it("is kept from nodes until its registry's credentials are there, if it has any", () => {
    const gatesOf = (of: Partial<ImageSpec>, added: Partial<PodSettings["additions"]> = {}) =>
      podOf({ ...spec, ...of }, { ...settings, additions: added }).spec?.schedulingGates;
    const from = { ...spec.from, auth: { username: "someone", password: "word" } };
    expect(gatesOf({})).toBeUndefined();
    expect(gatesOf({ from })).toEqual([{ name: "millrace/credentials" }]);
    expect(gatesOf({ from }, { spec: { schedulingGates: [{ name: "own" }] } })).toHaveLength(2);
    expect(gatesOf({ from }, { spec: { nodeName: "n1" } })).toBeUndefined();
  });

  it("passes words on as they are, although Kubernetes would replace some", () => {
    expect(container({ command: ["sh", "-c", "echo $(HOME) $$ $X"] })?.args).toEqual([
      "sh",
      "-c",
      "echo $$(HOME) $$$$ $$X",
    ]);
    expect(container({ entrypoint: ["/run"], command: ["a"] })).toMatchObject({ command: ["/run"], args: ["a"] });
  });

  it("asks for GPUs by count, and for nodes with their types in order", () => {
    const pod = podOf({ ...spec, gpuWish: { count: 2, types: ["NVIDIA L4", "NVIDIA  RTX A4500"] } }, settings);
    expect(pod.spec?.containers[0]?.resources?.limits).toMatchObject({ "nvidia.com/gpu": "2" });
    const {
      requiredDuringSchedulingIgnoredDuringExecution: must,
      preferredDuringSchedulingIgnoredDuringExecution: best,
    } = pod.spec?.affinity?.nodeAffinity ?? {};
    const key = settings.gpuLabel;
    expect(must?.nodeSelectorTerms).toEqual([
      { matchExpressions: [{ key, operator: "In", values: ["NVIDIA-L4", "NVIDIA-RTX-A4500"] }] },
    ]);
    const preferred = best?.map(({ weight, preference }) => [weight, preference.matchExpressions?.[0]?.values]);
    expect(preferred).toEqual([
      [100, ["NVIDIA-L4"]],
      [1, ["NVIDIA-RTX-A4500"]],
    ]);
    expect(podOf({ ...spec, gpuWish: { count: 1, types: [] } }, settings).spec?.affinity).toBeUndefined();
  });

  it("asks for a driver that supports its CUDA version, by the labels of either name, or of no name", () => {
    const terms = (minCuda: string, types: string[] = []) =>
      podOf({ ...spec, gpuWish: { count: 1, types, minCuda } }, settings).spec?.affinity?.nodeAffinity
        ?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    const told = (nodes: Record<string, string>, made = terms("12.8")) =>
      made?.some(({ matchExpressions = [] }) =>
        matchExpressions.every(({ key, operator, values = [] }) => {
          const value = nodes[key];
          if (operator === "DoesNotExist") return value === undefined;
          if (value === undefined) return false;
          return operator === "Gt" ? Number(value) > Number(values[0]) : values.includes(value);
        }),
      );
    for (const label of ["nvidia.com/cuda.runtime-version", "nvidia.com/cuda.runtime"]) {
      const of = (major: string, minor: string) => told({ [`${label}.major`]: major, [`${label}.minor`]: minor });
      expect([of("12", "8"), of("12", "10"), of("13", "0"), of("12", "7"), of("11", "9")]).toEqual([
        true,
        true,
        true,
        false,
        false,
      ]);
    }
    expect(told({})).toBe(true);
    const key = "nvidia.com/cuda.runtime-version.major";
    expect([told({ [key]: "12" }, terms("12.0")), told({ [key]: "11" }, terms("12.0"))]).toEqual([true, false]);
    const typed = terms("12.8", ["NVIDIA L4"]);
    expect([told({}, typed), told({ [settings.gpuLabel]: "NVIDIA-L4" }, typed)]).toEqual([false, true]);
  });

  it("with GPU types keeps to the nodes that the operator allows", () => {
    const zone = (value: string) => ({ matchExpressions: [{ key: "zone", operator: "In", values: [value] }] });
    const nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [zone("a"), zone("b")] },
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, preference: zone("b") }],
    };
    const additions = { spec: { affinity: { nodeAffinity, podAffinity: {} } } };
    const pod = podOf({ ...spec, gpuWish: { count: 1, types: ["NVIDIA L4"] } }, { ...settings, additions });
    const made = pod.spec?.affinity;
    const gpu = { key: settings.gpuLabel, operator: "In", values: ["NVIDIA-L4"] };
    expect(made?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms).toEqual(
      [zone("a"), zone("b")].map(({ matchExpressions }) => ({ matchExpressions: [...matchExpressions, gpu] })),
    );
    expect(made?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution?.map(({ weight }) => weight)).toEqual([
      100, 5,
    ]);
    expect(made?.podAffinity).toEqual({});
  });

  it("goes where its volume is mounted, if that can be on one node only; of several volumes it wishes to", () => {
    const mount = (volumeId: string) => ({ target: `/${volumeId}`, volumeId, path: "" });
    const made = (volumes: string[], more: Partial<PodSettings> = {}) =>
      podOf({ ...spec, mounts: volumes.map(mount) }, { ...settings, hasVolumesOfOneNode: true, ...more });
    const term = (volume: string) => ({
      labelSelector: { matchExpressions: [{ key: `volume.millrace/${volume}`, operator: "Exists" }] },
      topologyKey: "kubernetes.io/hostname",
    });
    const one = made(["Vol1"]);
    expect(one.metadata?.labels).toMatchObject({ "volume.millrace/vol1": "" });
    expect(one.spec?.affinity).toEqual({
      podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term("vol1")] },
    });
    const of = (weight: number, volume: string) => ({ weight, podAffinityTerm: term(volume) });
    expect(made(["a", "b"]).spec?.affinity?.podAffinity).toEqual({
      preferredDuringSchedulingIgnoredDuringExecution: [of(100, "a"), of(100, "b")],
    });
    const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term("theirs")] };
    const additions = { spec: { affinity: { podAffinity } } };
    expect(made(["a"], { additions }).spec?.affinity?.podAffinity).toEqual({
      requiredDuringSchedulingIgnoredDuringExecution: [term("theirs"), term("a")],
    });
    expect(made([]).spec?.affinity).toBeUndefined();
    expect(made(["a"], { hasVolumesOfOneNode: false }).spec?.affinity).toBeUndefined();
  });

  it("limits memory and disk, and asks for processors", () => {
    expect(container({ cpus: 1.5, memoryMib: 2_048, diskGb: 5 })?.resources).toEqual({
      requests: { cpu: "1500m", memory: "2048Mi", "ephemeral-storage": "1G" },
      limits: { memory: "2048Mi", "ephemeral-storage": "5G" },
    });
  });

  it("mounts each claim once, wherever it is seen", () => {
    const mounts = ["/a", "/b"].map((target) => ({ target, volumeId: "Vol1", path: "" }));
    const { volumes, containers } = podOf({ ...spec, mounts }, settings).spec ?? {};
    expect(volumes?.map(({ name }) => name)).toEqual(["shm", claimOf("Vol1")]);
    expect(containers?.[0]?.volumeMounts?.map(({ mountPath }) => mountPath)).toEqual(["/dev/shm", "/a", "/b"]);
  });

  it("has the registry's credentials in a secret of their own", () => {
    const from = { ...spec.from, auth: { username: "me", password: "of-registry" } };
    const pod = podOf({ ...spec, from }, settings);
    // they come first: an image whose credentials are not there yet is pulled without any
    const [pull] = secretsOf({ ...spec, from }, pod, settings);
    expect(pod.spec?.imagePullSecrets).toEqual([{ name: pull?.metadata?.name }]);
    const { auths } = JSON.parse(pull?.stringData?.[".dockerconfigjson"] ?? "{}");
    expect(auths).toEqual({ "registry.example:5000": from.auth });
    const [hub] = secretsOf({ ...spec, from: { ...from, image: "me/worker" } }, pod, settings);
    expect(hub?.stringData?.[".dockerconfigjson"]).toContain("https://index.docker.io/v1/");
  });

  it("has what the operator adds, but not instead of what makes it a worker's", () => {
    const tolerations = [{ key: "gpu", operator: "Exists" }];
    const labels = { team: "a", "millrace.worker": "other" };
    const additions = {
      metadata: { labels },
      spec: { nodeSelector: { pool: "x" }, tolerations, restartPolicy: "Always" },
    };
    const pod = podOf(spec, { ...settings, additions });
    expect(pod.metadata?.labels).toMatchObject({ team: "a", "millrace.worker": spec.workerId });
    expect(pod.spec).toMatchObject({
      nodeSelector: { pool: "x" },
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 3,
    });
    expect(pod.spec?.tolerations).toHaveLength(3);
  });

  it("of a class has what the class adds, and is not made without it", () => {
    const classes = new Map([["spot", { spec: { priorityClassName: "low" } }]]);
    const made = (podClass: string) => podOf({ ...spec, podClass }, { ...settings, classes });
    expect(made("spot").spec?.priorityClassName).toBe("low");
    expect(() => made("other")).toThrow(
      "the pod class 'other' of its endpoint is not in MILLRACE_KUBERNETES_POD any more",
    );
  });
});

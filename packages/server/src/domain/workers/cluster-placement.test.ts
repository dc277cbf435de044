import { describe, expect, it } from "vitest";
import type { Full } from "./cluster-placement.js";
import { place } from "./placement.js";
import { anywhere, given, gpu, holds, host, need } from "./placement-fixture.js";

describe("A worker's place with a cluster beside the machines", () => {
  const memory = { name: "one", memoryMib: 4_096, gpuMemoryMib: 16_384 };
  const cluster = host(9, [], { cluster: memory, cannotRun: ["directory"], cpus: 0, memoryMib: 0 });
  const image = { source: "image" } as const;

  it("is a machine as long as one has room, and the cluster from then on", () => {
    const hosts = [cluster, host(1, [gpu("a")], { workers: 5 })];
    expect(given(place(need(image), hosts, anywhere, []))).toEqual([1, "a"]);
    const full = place(need({ ...image, gpuCount: 2, gpuTypes: ["NVIDIA A40", "NVIDIA L4"] }), hosts, anywhere, []);
    const gpus = [1, 2].map(() => ({ id: "", name: "NVIDIA A40" }));
    expect(full).toEqual({ hostNo: 9, resources: { gpus, cpus: undefined, memoryMib: 2 * 16_384 } });
    const shares = [{ cpus: 64, memoryMib: 1_024 }];
    expect(place(need({ ...image, gpuCount: 0, shares }), hosts, anywhere, [])).toMatchObject({ hostNo: 9 });
  });

  it("is the cluster where no machine is large enough, which is asked for as much", () => {
    const hosts = [cluster, host(1, [gpu("a")], { cpus: 8, memoryMib: 16_384 })];
    const asks = (cpus: number, memoryGb: number) =>
      place(need({ ...image, least: { cpus, memoryGb } }), hosts, anywhere, []);
    expect(given(asks(8, 16))).toEqual([1, "a"]);
    expect(asks(9, 8)).toMatchObject({ hostNo: 9, resources: { cpus: 9, memoryMib: 16_384 } });
    expect(asks(0, 32)).toMatchObject({ hostNo: 9, resources: { cpus: undefined, memoryMib: 32_768 } });
  });

  it("is a machine where a paused worker can give way, rather than the cluster", () => {
    const paused = [holds(4, [gpu("a")], { pausedRank: 1 })];
    const found = place(need(image), [cluster, host(1, [gpu("a")])], anywhere, paused);
    expect(found).toMatchObject({ giveWay: [4] });
  });

  it("is never the cluster for a directory of a machine", () => {
    const found = place(need({ source: "directory" }), [cluster, host(1, [])], anywhere, []);
    expect(found).toMatchObject({ lacks: expect.stringContaining("It needs") });
  });

  it("is the first place of the order", () => {
    const hosts = [cluster, host(1, [gpu("a")])];
    const first = { ...anywhere, places: ["cluster", "machines"] as const };
    expect(place(need(image), hosts, first, [])).toMatchObject({ hostNo: 9 });
    const onMachines = { ...anywhere, places: ["machines"] as const };
    expect(place(need({ ...image, gpuCount: 2 }), hosts, onMachines, [])).toMatchObject({
      lacks: "It needs 2 × GPU of one type; here are 1 × NVIDIA L4.",
    });
    const inCluster = { ...anywhere, places: ["cluster"] as const };
    expect(place(need(image), hosts, inCluster, [])).toMatchObject({ hostNo: 9 });
    expect(place(need(image), hosts.slice(1), inCluster, [])).toMatchObject({
      lacks: "It has to run in a cluster, and none takes workers now.",
    });
    expect(place(need({ source: "directory" }), hosts, inCluster, [])).toMatchObject({
      lacks: "It has to run in a cluster, which runs container images only.",
    });
  });

  it("is one of several clusters: the first that may have its GPUs, or the one that is named", () => {
    const named = (no: number, name: string, more = {}) => ({ ...cluster, no, cluster: { ...memory, name, ...more } });
    const hosts = [named(8, "one"), named(9, "two"), host(1, [])];
    const at = (where: object, more = {}) => place(need({ ...image, ...more }), hosts, { ...anywhere, ...where }, []);
    expect(at({})).toMatchObject({ hostNo: 8 });
    expect(at({ clusters: [9, 8] })).toMatchObject({ hostNo: 9 });
    expect(at({ clusters: [9] })).toMatchObject({ hostNo: 9 });
    expect(at({ places: ["cluster/two"] })).toMatchObject({ hostNo: 9 });
    expect(at({ places: ["cluster/three"] })).toMatchObject({
      lacks: expect.stringContaining("cluster 'three', which takes no workers now"),
    });
    const types = (name: string, atOneNode: number) => ({
      gpuTypes: [{ name, memoryMib: 1, driver: "", count: 8, atOneNode }],
    });
    const known = [named(8, "one", types("NVIDIA L4", 1)), named(9, "two", types("NVIDIA A40", 2)), host(1, [])];
    const wants = (gpuTypes: string[], gpuCount: number) =>
      place(need({ ...image, gpuTypes, gpuCount }), known, anywhere, []);
    expect(wants(["NVIDIA L4"], 1)).toMatchObject({ hostNo: 8 });
    expect(wants(["NVIDIA A40"], 1)).toMatchObject({ hostNo: 9 });
    expect(wants([], 2)).toMatchObject({ hostNo: 9 });
    expect(wants(["NVIDIA H200"], 1)).toMatchObject({ hostNo: 8 });
    // what had no room comes later, but before what is known to lack the GPUs
    const a40 = need({ ...image, gpuTypes: ["NVIDIA A40"] });
    expect(
      place(a40, known, { ...anywhere, full: [{ hostNo: 9, cpus: undefined, memoryMib: 16_384 }] }, []),
    ).toMatchObject({ hostNo: 9 });
    expect(at({ full: [{ hostNo: 8, cpus: undefined, memoryMib: 16_384 }] })).toMatchObject({ hostNo: 9 });
    // no node has a label that names its GPUs
    const [, ...others] = known;
    expect(place(a40, [named(8, "one", { gpuTypes: [] }), ...others], anywhere, [])).toMatchObject({ hostNo: 8 });
  });

  it("is asked for the first size that it has not been found full for, in any cluster", () => {
    const hosts = [8, 9].map((no) => ({ ...cluster, no, cluster: { ...memory, name: `cluster ${no}` } }));
    const [large, small] = [
      { cpus: 16, memoryMib: 65_536 },
      { cpus: 2, memoryMib: 4_096 },
    ];
    const found = (full: readonly Full[]) => {
      const at = place(
        need({ ...image, gpuCount: 0, shares: [large, small] }),
        hosts,
        { ...anywhere, clusters: [8, 9], full },
        [],
      );
      return "hostNo" in at ? [at.hostNo, at.resources.cpus] : at.lacks;
    };
    const full = [8, 9].flatMap((hostNo) => [large, small].map((size) => ({ hostNo, ...size })));
    const [largeAt8, smallAt8, largeAt9] = full as [Full, Full, Full];
    expect(found([])).toEqual([8, 16]);
    expect(found([largeAt8])).toEqual([9, 16]);
    expect(found([largeAt8, largeAt9])).toEqual([8, 2]);
    expect(found([largeAt8, largeAt9, smallAt8])).toEqual([9, 2]);
    expect(found(full)).toEqual([8, 16]);
  });

  it("is a machine for a directory that none may run, so that its start says why", () => {
    const hosts = [cluster, host(1, [gpu("a")], { cannotRun: ["directory"] })];
    expect(given(place(need({ source: "directory" }), hosts, anywhere, []))).toEqual([1, "a"]);
  });

  it("is the cluster if machines run no images", () => {
    const hosts = [cluster, host(1, [gpu("a")], { cannotRun: ["image"] })];
    expect(place(need(image), hosts, anywhere, [])).toMatchObject({ hostNo: 9 });
  });
});

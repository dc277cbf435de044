import { describe, expect, it } from "vitest";
import { type EndpointSettings, endpointDefaults } from "../endpoints/endpoint.js";
import type { HostView } from "../hosts/host.js";
import { type Need, needOf } from "./need.js";
import { type Holding, place } from "./placement.js";
import { anywhere, given, gpu, holds, host, need } from "./placement-fixture.js";

describe("A worker's place", () => {
  it("is the host with the fewest workers among those with the needed resources", () => {
    const hosts = [host(1, [gpu("a")], { workers: 3 }), host(2, [gpu("b")], { workers: 1 }), host(3, [])];
    expect(given(place(need(), hosts, anywhere, []))).toEqual([2, "b"]);
  });

  it("has the first preferred type that is free anywhere, even on a busier host", () => {
    const hosts = [host(1, [gpu("a")], { workers: 9 }), host(2, [gpu("b", "NVIDIA A40")])];
    expect(given(place(need({ gpuTypes: ["NVIDIA L4", "NVIDIA A40"] }), hosts, anywhere, []))).toEqual([1, "a"]);
    const held = [holds(1, [gpu("a")])];
    expect(given(place(need({ gpuTypes: ["NVIDIA L4", "NVIDIA A40"] }), hosts, anywhere, held))).toEqual([2, "b"]);
  });

  it("is at a GPU whose driver supports its CUDA version, and says so where there is none", () => {
    const [old, recent] = [
      { ...gpu("a"), driver: "550.54" },
      { ...gpu("b"), driver: "580.65" },
    ];
    const hosts = [host(1, [old]), host(2, [recent], { workers: 9 })];
    const asks = (cuda: string, holdings: readonly Holding[] = []) =>
      place(need({ cuda, gpuTypes: ["NVIDIA L4"] }), hosts, anywhere, holdings);
    expect([given(asks("12.4")), given(asks("12.6"))]).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
    expect(asks("13.1")).toMatchObject({
      lacks:
        "It needs NVIDIA L4 whose driver supports CUDA 13.1; here are 1 × NVIDIA L4 with CUDA up to 12.4, 1 × NVIDIA L4 with CUDA up to 13.0.",
    });
    expect(asks("13.0", [holds(7, [recent], { hostNo: 2 })])).toMatchObject({
      lacks: "It needs NVIDIA L4 whose driver supports CUDA 13.0; free here: 0 of 1; held by worker 7.",
    });
    expect(given(place(need({ cuda: "13.1" }), [host(1, [{ ...old, driver: "" }])], anywhere, []))).toEqual([1, "a"]);
  });

  it("is on a machine as large as it asks for, which it does not hold", () => {
    const small = host(1, [gpu("a")], { cpus: 8, memoryMib: 15_900 });
    const large = host(2, [gpu("b")], { cpus: 32, memoryMib: 65_536, workers: 9 });
    const asks = (cpus: number, memoryGb: number, hosts = [small, large], holdings: readonly Holding[] = []) =>
      place(need({ least: { cpus, memoryGb } }), hosts, anywhere, holdings);
    expect([given(asks(8, 16)), given(asks(9, 0)), given(asks(0, 17))]).toEqual([
      [1, "a"],
      [2, "b"],
      [2, "b"],
    ]);
    expect(asks(0, 64)).toMatchObject({ resources: { cpus: undefined, memoryMib: undefined } });
    expect(asks(64, 256)).toEqual({
      lacks: "It needs a machine with 64 vCPU and 256 GB of memory; here are 8 vCPU and 16 GB, 32 vCPU and 64 GB.",
      giveWay: [],
    });
    expect(asks(0, 32, [small, large], [holds(7, [gpu("b")], { hostNo: 2 })])).toMatchObject({
      lacks: "It needs GPU; free here: 0 of 1; held by worker 7. Only machines with 32 GB of memory count.",
    });
  });

  it("is no machine without GPUs because those with GPUs are too small", () => {
    const lax = host(1, [], { gpusEnforced: false, memoryMib: 8_192 });
    const small = host(2, [gpu("a")], { memoryMib: 16_384 });
    const least = { cpus: 0, memoryGb: 32 };
    expect(place(need({ least }), [lax, small], anywhere, [])).toMatchObject({ lacks: expect.stringMatching(/32 GB/) });
    expect(given(place(need({ least }), [lax], anywhere, []))).toEqual([1]);
  });

  it("is in one of the endpoint's locations", () => {
    const hosts = [host(1, [gpu("a")], { location: "US" }), host(2, [gpu("b")], { location: "CZ", workers: 4 })];
    expect(given(place(need(), hosts, { ...anywhere, locations: "CZ,FR" }, []))).toEqual([2, "b"]);
    expect(place(need(), hosts, { ...anywhere, locations: "FR" }, [])).toMatchObject({
      lacks: "No host is in the places that the endpoint names.",
    });
  });

  it("is a host that can run it now, if there is one", () => {
    const lame = host(1, [gpu("a")], { cannotRun: ["image"] });
    const busy = host(2, [gpu("b")], { workers: 9 });
    expect(given(place(need({ source: "image" }), [lame, busy], anywhere, []))).toEqual([2, "b"]);
    expect(given(place(need({ source: "directory" }), [lame, busy], anywhere, []))).toEqual([1, "a"]);
    expect(given(place(need({ source: "image" }), [lame], anywhere, []))).toEqual([1, "a"]);
    expect(place(need({ source: "image" }), [lame, busy], anywhere, [holds(1, [gpu("b")])])).toHaveProperty("lacks");
  });

  it("has all its GPUs on one host, and of one type", () => {
    const mixed = host(1, [gpu("a"), gpu("b", "NVIDIA A40")]);
    expect(place(need({ gpuCount: 2 }), [mixed, host(2, [gpu("c")])], anywhere, [])).toMatchObject({
      lacks: expect.any(String),
    });
    expect(given(place(need({ gpuCount: 2 }), [mixed, host(2, [gpu("c"), gpu("d")])], anywhere, []))).toEqual([
      2,
      "c",
      "d",
    ]);
  });

  it("recognises a type by its name, however the driver spaces it", () => {
    const hosts = [host(1, [gpu("a", "NVIDIA RTX A4500")])];
    expect(given(place(need({ gpuTypes: ["NVIDIA  RTX a4500"] }), hosts, anywhere, []))).toEqual([1, "a"]);
  });

  it("needs no GPU if the host does not enforce them, and gets one if one is free", () => {
    const lax = { gpusEnforced: false };
    expect(given(place(need({ gpuCount: 4 }), [host(1, [], lax)], anywhere, []))).toEqual([1]);
    expect(given(place(need(), [host(1, [gpu("a")], lax)], anywhere, []))).toEqual([1, "a"]);
    expect(given(place(need(), [host(1, [gpu("a")], lax)], anywhere, [holds(1, [gpu("a")])]))).toEqual([1]);
  });

  it("is not a host without enforced GPUs if another host enforces them", () => {
    const hosts = [host(1, [], { gpusEnforced: false }), host(2, [gpu("a")], { workers: 5 })];
    expect(given(place(need(), hosts, anywhere, []))).toEqual([2, "a"]);
    expect(place(need(), hosts, anywhere, [holds(1, [gpu("a")], { hostNo: 2 })])).toMatchObject({ giveWay: [] });
    expect(given(place(need({ gpuCount: 0 }), hosts, anywhere, []))).toEqual([1]);
  });

  it("has no GPU that another host holds: two servers on one machine are two hosts and report the same GPUs", () => {
    const hosts = [host(1, [gpu("a"), gpu("b")]), host(2, [gpu("a"), gpu("b")])];
    expect(given(place(need(), hosts, anywhere, [holds(1, [gpu("a")], { hostNo: 2 })]))).toEqual([1, "b"]);
  });

  it("counts only the processors and memory that are held on its own host", () => {
    const held = [holds(1, [], { hostNo: 2, resources: { gpus: [], cpus: 8, memoryMib: 16_384 } })];
    const wants = need({ gpuCount: 0, shares: [{ cpus: 8, memoryMib: 16_384 }] });
    expect(given(place(wants, [host(1, [])], anywhere, held))).toEqual([1]);
    expect(place(wants, [host(2, [])], anywhere, held)).toMatchObject({
      lacks: "It needs 8 vCPU and 16 GB of memory; free here: 0 vCPU and 0 GB of 8 vCPU and 16 GB; held by worker 1.",
    });
  });
});

describe("Shares of a machine", () => {
  const [large, small] = [
    { cpus: 64, memoryMib: 262_144 },
    { cpus: 2, memoryMib: 8_192 },
  ];

  it("are given in the order of preference: the next if the first does not fit", () => {
    const wants = need({ gpuCount: 0, shares: [large, small] });
    expect(place(wants, [host(1, [])], anywhere, [])).toMatchObject({ resources: { gpus: [], ...small } });
    const roomy = host(2, [], { ...large, workers: 9 });
    expect(place(wants, [host(1, []), roomy], anywhere, [])).toMatchObject({ hostNo: 2, resources: large });
    const held = [holds(1, [], { resources: { gpus: [], cpus: 8, memoryMib: 16_384 } })];
    expect(place(wants, [host(1, [])], anywhere, held)).toMatchObject({
      lacks: expect.stringMatching(/^It needs 64 vCPU and 256 GB of memory, or 2 vCPU and 8 GB of memory; free here: /),
    });
  });
});

describe("If nothing fits", () => {
  it.each<[string, Partial<Need>, HostView[], Holding[]]>([
    [
      "It needs NVIDIA H200; here are 2 × NVIDIA L4, 1 × NVIDIA A40.",
      { gpuTypes: ["NVIDIA H200"] },
      [host(1, [gpu("a"), gpu("b"), gpu("c", "NVIDIA A40")])],
      [],
    ],
    ["It needs 4 × GPU of one type; here are 1 × NVIDIA L4.", { gpuCount: 4 }, [host(1, [gpu("a")])], []],
    [
      "It needs 2 × GPU of one type; here are 1 × NVIDIA L4, 1 × NVIDIA A40.",
      { gpuCount: 2 },
      [host(1, [gpu("a"), gpu("b", "NVIDIA A40")])],
      [],
    ],
    [
      "It needs 2 × NVIDIA L4 at one host; here are 1 × NVIDIA L4.", // two servers on one machine
      { gpuCount: 2, gpuTypes: ["NVIDIA L4"] },
      [host(1, [gpu("a")]), host(2, [gpu("a")])],
      [],
    ],
    [
      "It needs 2 × NVIDIA L4 at one host; here are 2 × NVIDIA L4.",
      { gpuCount: 2, gpuTypes: ["NVIDIA L4"] },
      [host(1, [gpu("a")]), host(2, [gpu("b")])],
      [],
    ],
    ["It needs GPU; here is no GPU (no driver).", {}, [host(1, [], { gpuProblem: "no driver" })], []],
    ["It needs GPU; free here: 0 of 1; held by worker 7.", {}, [host(1, [gpu("a")])], [holds(7, [gpu("a")])]],
  ])("the reason is: %s", (sentence, wants, hosts, held) => {
    expect(place(need(wants), hosts, anywhere, held)).toMatchObject({ lacks: sentence });
  });

  it("the scaler waits for a worker that is already leaving, and stops no other", () => {
    const [a, b] = [gpu("a"), gpu("b")];
    const held = [holds(1, [a], { isLeaving: true }), holds(2, [b], { pausedRank: 1 })];
    expect(place(need(), [host(1, [a, b])], anywhere, held)).toMatchObject({ giveWay: [] });
    expect(place(need({ gpuCount: 2 }), [host(1, [a, b])], anywhere, held)).toMatchObject({ giveWay: [2] });
  });

  it("only a few of many holders are named", () => {
    const gpus = Array.from({ length: 9 }, (_, n) => gpu(`g${n}`));
    const held = gpus.map((each, n) => holds(n, [each]));
    expect(place(need(), [host(1, gpus)], anywhere, held)).toMatchObject({
      lacks: expect.stringMatching(/held by worker 0, worker 1, worker 2, worker 3 and 5 more\.$/),
    });
  });

  it("paused workers give way, only as many as needed, the lowest rank first", () => {
    const [a, b, c] = [gpu("a"), gpu("b"), gpu("c")];
    const held = [
      holds(1, [a], { pausedRank: 30 }),
      holds(2, [b], { pausedRank: 10 }),
      holds(3, [c]),
      holds(4, [], { pausedRank: 1, resources: { gpus: [], cpus: 1, memoryMib: 1 } }),
    ];
    expect(place(need(), [host(1, [a, b, c])], anywhere, held)).toMatchObject({ giveWay: [2] });
    expect(place(need({ gpuCount: 2 }), [host(1, [a, b, c])], anywhere, held)).toMatchObject({ giveWay: [2, 1] });
    expect(place(need({ gpuCount: 3 }), [host(1, [a, b, c])], anywhere, held)).toMatchObject({ giveWay: [] });
  });
});

describe("The needs of a worker", () => {
  const of = (more: Partial<EndpointSettings>) => needOf({ ...endpointDefaults, name: "n", templateId: "t", ...more });

  it.each<[Partial<EndpointSettings>, Partial<Need>]>([
    [
      { gpuTypeIds: ["NVIDIA L4"], gpuCount: 2 },
      { gpuCount: 2, gpuTypes: ["NVIDIA L4"], shares: [{ cpus: undefined, memoryMib: undefined }] },
    ],
    [{ allowedCudaVersions: ["12.9", "12.4"] }, { cuda: "12.4" }],
    [{ vcpuCount: 4 }, { gpuCount: 1, shares: [{ cpus: undefined, memoryMib: undefined }] }],
    [{ computeType: "CPU" }, { gpuCount: 0, shares: [{ cpus: undefined, memoryMib: undefined }] }],
    [
      { computeType: "CPU", vcpuCount: 4 },
      { gpuCount: 0, shares: [{ cpus: 4, memoryMib: undefined }] },
    ],
    [
      { computeType: "CPU", vcpuCount: 4, cpuFlavorIds: ["cpu5m", "cpu3c"] },
      {
        shares: [
          { cpus: 4, memoryMib: 32_768 },
          { cpus: 4, memoryMib: 8_192 },
        ],
      },
    ],
    [
      { computeType: "CPU", instanceIds: ["cpu3g-2-8", "other", "cpu3c-1-2"], vcpuCount: 9 },
      {
        shares: [
          { cpus: 2, memoryMib: 8_192 },
          { cpus: 1, memoryMib: 2_048 },
        ],
      },
    ],
  ])("of %j is %j", (settings, expected) => {
    expect(of(settings)).toMatchObject(expected);
  });
});

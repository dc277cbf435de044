import { expect, it, vi } from "vitest";
import { type Cluster, ClusterRefusal } from "./api-server/cluster.js";
import { bytesOf, Claims } from "./claims.js";

it.each([
  ["10G", 10e9],
  ["1T", 1e12],
  ["1500M", 1.5e9],
  ["2Gi", 2 * 1_024 ** 3],
  ["1Ki", 1_024],
  ["1.5k", 1_500],
  ["7", 7],
  ["10000m", Number.POSITIVE_INFINITY],
  ["", Number.POSITIVE_INFINITY],
])("The quantity %j is %d bytes", (quantity, bytes) => {
  expect(bytesOf(quantity)).toBe(bytes);
});

it.each([
  ["1T", 2_000, "2000G"],
  ["1T", 1_000, undefined],
  ["20Gi", 21, undefined],
  ["a lot", 50, undefined],
])("A claim of %s for a volume of %d GB is given %s", async (has, sizeGb, wanted) => {
  const ask = vi.fn(async (method: string, _path: string, _call?: { body: unknown }) => {
    if (method === "POST") throw new ClusterRefusal(409, "AlreadyExists", "it is there");
    return { spec: { resources: { requests: { storage: has } } } };
  });
  const settings = { installation: "a", storageClass: undefined, accessMode: "ReadWriteOnce", cluster: "default" };
  const claims = new Claims({ ask } as unknown as Cluster, "workers", settings);
  await claims.ensure({ target: "/runpod-volume", volumeId: "v1", path: "", sizeGb });
  const given = ask.mock.calls.flatMap(([method, , call]) => (method === "PATCH" ? [call?.body] : []));
  expect(given).toEqual(wanted === undefined ? [] : [{ spec: { resources: { requests: { storage: wanted } } } }]);
});

it("A claim that cannot grow is told of once", async () => {
  const ask = vi.fn(async (method: string) => {
    if (method === "POST") throw new ClusterRefusal(409, "AlreadyExists", "it is there");
    if (method === "PATCH") throw new ClusterRefusal(403, "Forbidden", "its class cannot grow");
    return { spec: { resources: { requests: { storage: "10G" } } } };
  });
  const warn = vi.fn();
  const settings = {
    installation: "a",
    storageClass: undefined,
    accessMode: "ReadWriteOnce",
    cluster: "default",
    warn,
  };
  const claims = new Claims({ ask } as unknown as Cluster, "workers", settings);
  for (let n = 0; n < 3; n++) await claims.ensure({ target: "/runpod-volume", volumeId: "v1", path: "", sizeGb: 15 });
  expect(warn.mock.calls).toEqual([
    ["the claim millrace-volume-v1 has 10G and cannot get the 15 GB of its volume: its class cannot grow"],
  ]);
});

it("A quota in conflict is no claim: its making is tried again", async () => {
  const ask = vi.fn(async (method: string) => {
    if (method === "POST") throw new ClusterRefusal(409, "Conflict", "Operation cannot be fulfilled on resourcequotas");
    throw new ClusterRefusal(404, "NotFound", "there is none");
  });
  const settings = { installation: "a", storageClass: undefined, accessMode: "ReadWriteOnce", cluster: "default" };
  const claims = new Claims({ ask } as unknown as Cluster, "workers", settings);
  const made = claims.ensure({ target: "/runpod-volume", volumeId: "v1", path: "", sizeGb: 15 });
  await expect(made).rejects.toThrow(/resourcequotas/);
});

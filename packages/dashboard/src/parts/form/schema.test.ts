import {
  ApiKeyCreate,
  EndpointCreate,
  EndpointUpdate,
  PodCreate,
  RegistryAuthCreate,
  SecretCreate,
  TemplateCreate,
  UserCreate,
  UserUpdate,
  VolumeCreate,
} from "@millrace/api";
import { describe, expect, it } from "vitest";
import { changesOf, fieldsOf, filled } from "./schema.js";

const kinds = (schema: object) => Object.fromEntries(fieldsOf(schema).map(({ name, kind }) => [name, kind]));

describe("The fields of a form", () => {
  it("are asked for as their schemas say", () => {
    expect(kinds(EndpointCreate)).toMatchObject({
      templateId: "text",
      type: "choice",
      gpuTypeIds: "list",
      allowedCudaVersions: "list",
      env: "pairs",
      executionTimeoutMs: "number",
      flashboot: "switch",
      scalerType: "choice",
    });
    expect(kinds(UserCreate)).toMatchObject({ quotas: "group", weight: "number", role: "choice" });
  });

  // a key's scope has a control of its own
  it.each([
    ["endpoint", EndpointCreate],
    ["change of an endpoint", EndpointUpdate],
    ["template", TemplateCreate],
    ["volume", VolumeCreate],
    ["pod", PodCreate],
    ["secret", SecretCreate],
    ["registry", RegistryAuthCreate],
    ["user", UserCreate],
  ])("can all be filled in: %s", (_, schema) => {
    expect(fieldsOf(schema).filter(({ kind }) => kind === "other")).toEqual([]);
  });

  it("know what is required, and their bounds", () => {
    const [name, size] = fieldsOf(VolumeCreate, ["name", "size"]);
    expect([name?.isRequired, size]).toEqual([
      true,
      expect.objectContaining({ minimum: 0, maximum: 4_000, isWhole: true }),
    ]);
    expect(fieldsOf(ApiKeyCreate, ["expiresAt"])[0]?.isRequired).toBe(false);
  });
});

describe("What is sent", () => {
  const fields = fieldsOf(EndpointUpdate, ["name", "workersMax", "env", "minCudaVersion"]);

  it("is what was changed; a field that was emptied is null", () => {
    const before = { name: "a", workersMax: 3, env: { A: "1" }, minCudaVersion: "12.1", other: 1 };
    expect(changesOf(fields, before, before)).toEqual({});
    expect(changesOf(fields, before, { ...before, workersMax: 5, minCudaVersion: undefined, other: 2 })).toEqual({
      workersMax: 5,
      minCudaVersion: null,
    });
    expect(changesOf(fields, before, { ...before, env: {} })).toEqual({ env: {} });
    expect(changesOf(fields, {}, { name: "" })).toEqual({});
  });

  it("is, of a group, what was changed in it", () => {
    const terms = fieldsOf(UserUpdate, ["quotas"]);
    const before = { quotas: { workers: 10, gpus: 4 } };
    expect(changesOf(terms, before, { quotas: { workers: undefined, gpus: 4 } })).toEqual({
      quotas: { workers: null },
    });
    expect(changesOf(terms, {}, { quotas: { pods: 1 } })).toEqual({ quotas: { pods: 1 } });
    expect(changesOf(terms, {}, { quotas: { pods: undefined } })).toEqual({});
  });

  it("is, of a new thing, what was filled in", () => {
    expect(filled({ name: "a", size: 0, note: "", list: [], other: undefined })).toEqual({
      name: "a",
      size: 0,
      list: [],
    });
  });
});

import { afterAll, beforeAll, expect, it } from "vitest";
import { type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene, { rates: undefined });
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const template = { name: "a", imageName: "registry.example/image:1" };
const saved = async (kind: "Template" | "Endpoint", input: object) => {
  const query = `mutation ($input: ${kind === "Template" ? "SaveTemplateInput" : "EndpointInput"}!) { save${kind}(input: $input) { id } }`;
  return (await http.post("/graphql", { query, variables: { input } })).json.errors?.[0];
};

it("Control characters and impossible mount paths are refused over REST and GraphQL alike, and nothing is saved", async () => {
  const before = scene.parts.registry.templates().length;
  const rest = [{ dockerStartCmd: ["a\0"] }, { volumeMountPath: "/proc" }, { volumeMountPath: "/\0" }];
  for (const input of rest) {
    const { status, json } = await http.post("/v1/templates", { ...template, ...input });
    expect([status, json.code, json.error]).toEqual([
      400,
      "INVALID_INPUT",
      expect.stringMatching(/contains|cannot hold a volume/),
    ]);
  }
  const common = { ...template, containerDiskInGb: 1, volumeInGb: 0, env: [] };
  for (const input of [{ dockerArgs: "a\0" }, { dockerArgs: "", volumeMountPath: "relative" }]) {
    const error = await saved("Template", { ...common, ...input });
    expect(error).toMatchObject({
      message: expect.stringMatching(/contains|cannot hold a volume/),
      extensions: { code: "INVALID_INPUT" },
    });
  }
  expect(scene.parts.registry.templates()).toHaveLength(before);

  const { id: templateId } = await scene.template();
  const { status, json } = await http.post("/v1/endpoints", { templateId, name: "\0" });
  expect([status, json.error]).toEqual([400, "'name' contains a control character; remove it."]);
  const error = await saved("Endpoint", { name: "a\0", templateId, gpuIds: "AMPERE_16" });
  expect(error).toMatchObject({ message: expect.stringMatching(/'name' contains/) });
});

it.each([
  ["templates", { name: "a\x85" }, "'name' contains a control character; remove it."],
  ["templates", { readme: "a\n\x9b" }, /^'readme' contains a control character other than tabs/],
  ["templates", { dockerStartCmd: ["b", "a\x85"] }, /^'dockerStartCmd' contains a control character other than tabs/],
  ["endpoints", { name: "\x85" }, "'name' contains a control character; remove it."],
  ["networkvolumes", { dataCenterId: "\x85" }, "'dataCenterId' contains a control character; remove it."],
])("Over REST %s with %j are refused in the same words, as the document says", async (path, wrong, words) => {
  const { json: document } = await http.get("/v1/openapi.json");
  const [[field, value]] = Object.entries(wrong) as [[string, string | string[]]];
  const { properties } = document.paths[`/v1/${path}`].post.requestBody.content["application/json"].schema;
  const patterns = JSON.stringify(properties[field]).match(/"pattern":"(?:[^"\\]|\\.)*"/g) ?? [];
  const isDocumented = patterns.some((each) => {
    const { pattern } = JSON.parse(`{${each}}`);
    return ![value].flat().every((text) => new RegExp(pattern, "u").test(text));
  });
  expect(isDocumented).toBe(true);
  const whole = { ...template, templateId: "unknown", size: 1, dataCenterId: "EU-RO-1", ...wrong };
  const { status, json } = await http.post(`/v1/${path}`, whole);
  expect([status, json.error]).toEqual([400, typeof words === "string" ? words : expect.stringMatching(words)]);
});

import { isInputObjectType } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { isIgnored } from "./ignored.js";
import { schema } from "./schema/index.js";

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

const deploy = "mutation ($input: PodFindAndDeployOnDemandInput) { podFindAndDeployOnDemand(input: $input) { id } }";
const gpus = (input: string) => `{ gpuTypes { lowestPrice(input: ${input}) { stockStatus } } }`;
const save = "mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }";

describe("A reply names the inputs of its query that had no effect", () => {
  const pod = { imageName: "alpine:3" };
  const aside = "query Aside { gpuTypes(input: { cluster: true }) { id } }";
  it.each<[what: string, body: object, named: string | null]>([
    [
      "in a variable",
      { query: deploy, variables: { input: { ...pod, minDisk: 10, startSsh: null } } },
      "input.minDisk, input.startSsh",
    ],
    [
      "in the text",
      { query: gpus("{ minDisk: 10, minMemoryInGb: 1, secureCloud: true }") },
      "input.minDisk, input.secureCloud",
    ],
    [
      "in the text, with a variable's value",
      { query: `query ($disk: Int) ${gpus("{ minDisk: $disk }")}`, variables: { disk: 1 } },
      "input.minDisk",
    ],
    [
      "in a fragment",
      { query: "{ ...F } fragment F on Query { gpuTypes(input: { cluster: true }) { id } }" },
      "input.cluster",
    ],
    [
      "deeper down",
      { query: save, variables: { input: { name: "e", gpuIds: "ADA_24", template: { ...pod, config: {} } } } },
      "input.template.config",
    ],
    [
      "in a list, once",
      {
        query: save,
        variables: {
          input: { networkVolumeIds: [1, 2].map((n) => ({ networkVolumeId: `${n}`, dataCenterId: "EU-RO-1" })) },
        },
      },
      "input.networkVolumeIds.dataCenterId",
    ],
    ["as a variable that is not declared", { query: deploy, variables: { input: pod, inptu: {} } }, "inptu"],
    [
      "but not of an operation that is not run",
      { query: `query Run { myself { id } } ${aside}`, operationName: "Run" },
      null,
    ],
    ["and is silent if there are none", { query: deploy, variables: { input: { ...pod, minMemoryInGb: 1 } } }, null],
  ])("%s", async (_, body, named) => {
    const { status, headers, text } = await http.post("/graphql", body);
    expect(status, text).toBe(200);
    expect(headers.get("x-millrace-ignored")).toBe(named);
  });

  it("also at the public clients' prefix", async () => {
    const { headers } = await http.post("/sdk/graphql", { query: gpus("{ minDisk: 10 }") });
    expect(headers.get("x-millrace-ignored")).toBe("input.minDisk");
  });
});

it("The schema's words say which inputs are ignored: the last ones of their type, from the first that says so", () => {
  const wrong = Object.values(schema.getTypeMap()).flatMap((type) => {
    if (!isInputObjectType(type)) return [];
    const fields = Object.values(type.getFields());
    const first = fields.findIndex(({ description }) => description?.startsWith("Ignored"));
    return fields.flatMap(({ name }, n) =>
      isIgnored(type, name) === (first >= 0 && n >= first) ? [] : [`${type.name}.${name}`],
    );
  });
  expect(wrong).toEqual([]);
});

import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { plainTemplate } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

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

const saveAuth = `mutation ($input: SaveRegistryAuthInput!) { saveRegistryAuth(input: $input) { id } }`;
const ask = (query: string, variables: object) => http.post("/graphql", { query, variables });
const secret = "hunter2secret";
const good = { name: "n", username: "u", password: "p" };

describe("A query", () => {
  const said = async (query: string) => {
    const { status, json } = await ask(query, {});
    return [status, json.errors?.[0].message, json.errors?.[0].extensions.code];
  };

  it("has a limited number of fields, because each is compared with the others", async () => {
    const { graphqlSelectionsMax: most } = limits;
    const of = (count: number) => `{myself{${"id ".repeat(count - 1)}}}`;
    expect(await said(of(most))).toEqual([200, undefined, undefined]);
    const message = "The query selects more than 300 fields and fragments.";
    expect(await said(of(most + 1))).toEqual([400, message, "GRAPHQL_VALIDATION_FAILED"]);
  });

  it("has at most 2,000 tokens: validating more takes too long", async () => {
    const of = (values: number) => `{a(x:[${"1 ".repeat(values)}])}`; // and 9 tokens around them
    expect((await said(of(1_991)))[2]).toBe("GRAPHQL_VALIDATION_FAILED");
    expect((await said(of(1_992)))[2]).toBe("GRAPHQL_PARSE_FAILED");
  });

  it("has a limited number of lines, and only its first mistakes are told: each is looked for from the beginning", async () => {
    const { graphqlLinesMax: most, graphqlMistakesMax: told } = limits;
    const of = (lines: number) =>
      `${"\n".repeat(lines - 1)}{${Array.from({ length: 150 }, (_, n) => `f${n}`).join(" ")}}`;
    const { json } = await ask(of(most), {});
    expect(json.errors.length).toBeLessThanOrEqual(told + 1); // the last says that there are more
    expect(json.errors[0].locations).toEqual([{ line: most, column: 2 }]);
    expect(await said(of(most + 1))).toEqual([400, "The query has more than 5000 lines.", "GRAPHQL_PARSE_FAILED"]);
  });

  it.each([
    ["fragments", (count: number) => `{myself{${"...F ".repeat(count)}}}fragment F on Myself{id}`],
    ["inline fragments", (count: number) => `{${"...{myself{id}}".repeat(count / 2)}}`],
    ["definitions", (count: number) => "fragment F on Myself{id}".repeat(count / 2 + 1)],
  ])("is bounded in its %s, too", async (_, of) => {
    expect((await said(of(limits.graphqlSelectionsMax)))[1]).toMatch(/more than 300 fields and fragments/);
  });

  it("is refused if its answer would have too many entries or bytes", async () => {
    const { registry } = scene.parts;
    const settings = { ...plainTemplate, name: "many", readme: "r".repeat(40_000) };
    const make = (n: number) => registry.createTemplate({ id: `many${n}`, ownerNo: scene.admin.ownerNo, settings });
    await Promise.all(Array.from({ length: 500 }, (_, n) => make(n)));
    const count = registry.templates().length;
    const { json } = await ask("{myself{podTemplates{id}}}", {});
    expect(json.data.myself.podTemplates).toHaveLength(count);
    const aliases = Array.from({ length: 1 + limits.graphqlEntriesMax / count }, (_, n) => `a${n}:podTemplates{id}`);
    const [tooMany, tooLong] = [
      await ask(`{myself{${aliases.join(" ")}}}`, {}),
      await ask("{myself{podTemplates{readme}}}", {}),
    ];
    expect(tooMany.json.errors).toMatchObject([
      {
        message: "The query lists more than 50000 entries: ask for one list at a time.",
        extensions: { code: "INVALID_INPUT" },
      },
    ]);
    expect(tooLong.json.errors).toMatchObject([
      {
        message: expect.stringMatching(/^The answer is longer than 8388608 bytes/),
        extensions: { code: "INVALID_INPUT" },
      },
    ]);
  });

  it("counts the entries of long environments, whatever their alias, and makes them in turns", async () => {
    const { registry } = scene.parts;
    const env = Object.fromEntries(Array.from({ length: 6_000 }, (_, n) => [`NAME_${n}`, "x"]));
    const settings = { ...plainTemplate, name: "long", env };
    await registry.createTemplate({ id: "longenv000", ownerNo: scene.admin.ownerNo, settings });
    const { json } = await ask("{myself{podTemplates{id env{key value}}}}", {});
    const long = json.data.myself.podTemplates.find(({ id }: { id: string }) => id === "longenv000");
    expect(long.env).toHaveLength(6_000);
    const aliases = Array.from({ length: 9 }, (_, n) => `a${n}:podTemplates{env{key}}`);
    expect((await ask(`{myself{${aliases.join(" ")}}}`, {})).json.errors).toMatchObject([
      { message: expect.stringMatching(/more than 50000 entries/) },
    ]);
  });

  it("may request the whole schema, and contain a long environment", async () => {
    expect((await said(getIntrospectionQuery()))[0]).toBe(200);
    const env = Array.from({ length: 200 }, (_, n) => `{key:"NAME_${n}",value:"x"}`).join();
    const template = `name:"long",imageName:"hello:1",dockerArgs:"",containerDiskInGb:5,volumeInGb:0,env:[${env}]`;
    expect((await said(`mutation{saveTemplate(input:{${template}}){id}}`))[0]).toBe(200);
  });
});

describe("A variable that does not fit", () => {
  it.each([
    [{ ...good, password: { a: secret } }, /at "input.password": String cannot represent a non string value\./],
    [{ ...good, password: [secret] }, /at "input.password": String cannot represent/],
    [{ ...good, "": secret }, /at "input": it has another type/],
    [{ username: secret, password: secret }, /at "input": Expected value .* to include required field "name"\./],
    [{ ...good, other: secret }, /at "input": Expected value .* not to include unknown field "other"\./],
    [`${secret} at "x"`, /at "input": Expected value of type "SaveRegistryAuthInput" to be an object\./],
  ])("is refused with its path, and its value is neither shown nor logged: %j", async (input, said) => {
    const { status, text, json } = await ask(saveAuth, { input });
    expect([status, json.errors[0].extensions.code]).toEqual([400, "INVALID_INPUT"]);
    expect(json.errors[0].message).toMatch(said);
    expect(text).not.toContain(secret);
    expect(scene.events).not.toContainEqual(expect.objectContaining({ type: "request.failed" }));
  });

  it("is refused if it is missing", async () => {
    const { json } = await ask("query ($id: String!) { podTemplate(id: $id) { id } }", {});
    expect(json.errors[0].message).toMatch(/at "id": Expected a value of non-null type "String!" to be provided\./);
  });

  it("is refused if it is not one of the field's values", async () => {
    const query = "mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }";
    const { json, text } = await ask(query, { input: { name: "a", flashBootType: secret } });
    expect(json.errors.map((each: { message: string }) => each.message)).toContainEqual(
      expect.stringMatching(/at "input.flashBootType": it has another type\./),
    );
    expect(text).not.toContain(secret);
  });

  it("is refused if it is absent and its argument is required", async () => {
    const query = 'mutation ($id: String = "x") { deleteEndpoint(id: $id) }';
    const { json } = await ask(query, { id: null });
    expect(json.errors[0]).toMatchObject({ extensions: { code: "INVALID_INPUT" } });
    expect(scene.events).not.toContainEqual(expect.objectContaining({ type: "request.failed" }));
  });
});

describe("A value in a query's text that does not fit", () => {
  it.each([
    [`{username: "${secret}", password: "${secret}"}`, /include required field "name"\.$/],
    [`{name: "n", username: "u", password: "p", other: "${secret}"}`, /not to include unknown field "other"\.$/],
    [`{name: "n", username: "u", password: ["${secret}"]}`, /^String cannot represent a non string value\.$/],
    [`{name: "n", username: "u", password: ${secret}}`, /^String cannot represent a non string value\.$/],
    [`"${secret}"`, /^Expected value of type "SaveRegistryAuthInput!?" to be an object\.$/],
    [`{name: "n" "${secret}"}`, /^Syntax Error: Expected Name, found another value\.$/],
  ])("is not repeated: %s", async (input, said) => {
    const { status, text, json } = await ask(`mutation { saveRegistryAuth(input: ${input}) { id } }`, {});
    expect([status, json.errors[0].message]).toEqual([400, expect.stringMatching(said)]);
    expect(text).not.toContain(secret);
  });
});

describe("A number", () => {
  const template = { name: "ranges", imageName: "registry.example/image:1", dockerArgs: "", volumeInGb: 0, env: [] };
  const saveTemplate = "mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }";
  const saveEndpoint = "mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }";

  it.each([
    ["containerDiskInGb", -1, "0 to 100000"],
    ["containerDiskInGb", 100_001, "0 to 100000"],
    ["volumeInGb", -5, "0 to 100000"],
  ])("of a template has REST's range: %s %i", async (field, value, range) => {
    const { json } = await ask(saveTemplate, { input: { ...template, containerDiskInGb: 1, [field]: value } });
    expect(json.errors).toEqual([
      expect.objectContaining({ message: `'${field}' must be a whole number from ${range}.` }),
    ]);
    const rest = { name: "ranges", imageName: "registry.example/image:1", [field]: value };
    expect((await http.post("/v1/templates", rest)).status).toBe(400);
  });

  it.each([
    ["idleTimeout", 0, "1 to 3600"],
    ["idleTimeout", 3_601, "1 to 3600"],
    ["scalerValue", 0, "1 to 1000000"],
    ["workersMin", -1, "0 to 10000"],
    ["workersMax", 10_001, "0 to 10000"],
    ["gpuCount", 65, "1 to 64"],
  ])("of an endpoint has REST's range: %s %i", async (field, value, range) => {
    const { id: templateId } = await scene.template();
    const input = { name: "ranges", templateId, gpuIds: "AMPERE_16", [field]: value };
    const { json } = await ask(saveEndpoint, { input });
    expect(json.errors).toEqual([
      expect.objectContaining({ message: `'${field}' must be a whole number from ${range}.` }),
    ]);
  });

  it.each<[string, object, RegExp]>([
    ["a name", { name: "n".repeat(192) }, /'name' may have 191 characters at most/],
    ["a category", { category: "TPU" }, /'category' must be one of NVIDIA, AMD, CPU/],
    ["a readme", { readme: "r".repeat(100_001) }, /'readme' may have 100000/],
    ["an image", { imageName: "i".repeat(4_097) }, /'imageName' may have 4096/],
    ["ports", { ports: Array(101).fill("80/http").join(",") }, /'ports' may have 100 entries/],
    ["a command", { dockerArgs: `${"a ".repeat(101)}` }, /'dockerStartCmd' may have 100 entries/],
    ["a variable", { env: [{ key: "A", value: "v".repeat(131_073) }] }, /env\.A may have 131072 characters/],
  ])("and every other field of a template has REST's rule: %s", async (_, field, words) => {
    const { json } = await ask(saveTemplate, { input: { ...template, containerDiskInGb: 1, ...field } });
    expect(json.errors).toEqual([expect.objectContaining({ message: expect.stringMatching(words) })]);
    expect(json.errors[0].extensions.code).toBe("INVALID_INPUT");
  });

  it("and an empty category means none", async () => {
    const query = "mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { category } }";
    const { json } = await ask(query, { input: { ...template, name: "none", containerDiskInGb: 1, category: "" } });
    expect(json.data.saveTemplate.category).toBe("NVIDIA");
  });

  it("within its range is kept", async () => {
    const input = { ...template, containerDiskInGb: 100_000 };
    expect((await ask(saveTemplate, { input })).json.data.saveTemplate.id).toMatch(/^[a-z0-9]{14}$/);
  });
});

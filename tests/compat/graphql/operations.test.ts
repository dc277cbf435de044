import {
  buildClientSchema,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  isInputObjectType,
  isObjectType,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../../harness.js";
import { accountOperations } from "./account-operations.js";
import { catalogOperations } from "./catalog-operations.js";
import { endpointOperations } from "./endpoint-operations.js";
import { hostedOperations } from "./hosted-operations.js";
import { makeObjects } from "./objects.js";
import { type Argument, bodyOf, type Made, type Operation } from "./operation.js";
import { podOperations } from "./pod-operations.js";
import { refusals } from "./refusals.js";
import { misfits } from "./shape.js";
import { templateOperations } from "./template-operations.js";

const operations: readonly Operation[] = [
  ...endpointOperations,
  ...templateOperations,
  ...accountOperations,
  ...catalogOperations,
  ...podOperations,
  ...hostedOperations,
];

let server: TestServer;
let made: Made;
let schema: GraphQLSchema;
const undos: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  server = await startServer({ MILLRACE_CONTAINERS: "off" });
  made = await makeObjects({ onTestFinished: (undo) => void undos.unshift(undo) }, server);
  const { body } = await call(server, "POST", "/sdk/graphql", { query: getIntrospectionQuery() });
  schema = buildClientSchema(body.data);
});
afterAll(async () => {
  for (const undo of undos) await undo();
  await server?.end();
});

const title = ({ by, field }: Operation) => `${field} of ${by}`;

describe("An operation of a public client", () => {
  it.each(operations.map((operation) => [title(operation), operation] as const))(
    "validates, runs and answers what the client reads: %s",
    async (_, operation) => {
      const { status, body } = await call(server, "POST", "/sdk/graphql", bodyOf(operation, made));
      expect(status, JSON.stringify(body)).toBe(200);
      if (operation.refusal) {
        expect(body.errors).toMatchObject([{ message: expect.stringMatching(operation.refusal) }]);
        return;
      }
      expect(Object.keys(body), JSON.stringify(body.errors)).toEqual(["data"]);
      const given = body.data[operation.field];
      expect(misfits(operation.gives, given)).toEqual([]);
      if (operation.holds) expect(given).toMatchObject(operation.holds(made));
    },
  );
});

/** What this service adds: no public client knows of it. */
const ours = /\.(place|podClass)$/;

/** The fields of the served schema that are not used so, as `Type.field`. */
const without = (used: ReadonlySet<string>, isOfKind: typeof isObjectType | typeof isInputObjectType) =>
  Object.values(schema.getTypeMap())
    .filter((type) => isOfKind(type) && !type.name.startsWith("__"))
    .flatMap((type) => Object.keys("getFields" in type ? type.getFields() : {}).map((name) => `${type.name}.${name}`))
    .filter((name) => !used.has(name) && !ours.test(name));

/** The fields that an argument's value sends, as `Type.field`. */
function sent(typeName: string, value: unknown): string[] {
  const type = schema.getType(typeName.replace(/[[\]!]/g, ""));
  if (Array.isArray(value)) return value.flatMap((each) => sent(typeName, each));
  if (!isInputObjectType(type) || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => {
    const inner = type.getFields()[name]?.type;
    return [`${type.name}.${name}`, ...(inner ? sent(getNamedType(inner).name, each) : [])];
  });
}

describe("The table of operations", () => {
  it("refuses what the page of compatibility lists, and nothing else", () => {
    const refused: Record<string, string[]> = {};
    for (const { field, by, refusal } of operations)
      if (refusal) refused[field] = [...new Set([...(refused[field] ?? []), by])];
    expect(refused).toEqual(Object.fromEntries(Object.entries(refusals).map(([field, { by }]) => [field, by])));
  });

  it("selects every field that the server offers", () => {
    const selected = new Set<string>();
    const types = new TypeInfo(schema);
    for (const operation of operations) {
      const note = {
        Field: () => void selected.add(`${types.getParentType()?.name}.${types.getFieldDef()?.name}`),
      };
      visit(parse(bodyOf(operation, made).query), visitWithTypeInfo(types, note));
    }
    expect(without(selected, isObjectType)).toEqual([]);
  });

  it("sends every field of an input that the server takes", () => {
    const all = operations.flatMap(({ args, within }): Argument[] =>
      Object.values({ ...args?.(made), ...within?.(made) }),
    );
    const used = new Set(all.flatMap(([type, value]) => sent(type, value)));
    expect(without(used, isInputObjectType)).toEqual([]);
  });
});

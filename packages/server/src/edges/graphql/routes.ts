import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  BREAK,
  type DocumentNode,
  defaultFieldResolver,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLFieldResolver,
  Kind,
  parse,
  type SelectionSetNode,
  validate,
  visit,
} from "graphql";
import { bodyTooLarge, invalid, malformed, Refusal, unauthorized } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { admitToManagement, presentCaller } from "../../operations/access/authenticate.js";
import type { Caller } from "../../operations/access/change-as.js";
import { turns } from "../../turns.js";
import { checkExtent } from "../shared/bodies/extent.js";
import { nameIgnored } from "../shared/bodies/json-body.js";
import { callerOf } from "../shared/caller.js";
import { explorerPage } from "./explorer.js";
import { ignoredInputs } from "./ignored.js";
import { Answer, jsonPieces } from "./resolvers/answer.js";
import { type Context, Seen } from "./resolvers/context.js";
import { resolvers } from "./resolvers/index.js";
import { countIntrospection } from "./resolvers/introspection.js";
import { schema } from "./schema/index.js";
import { misfit, withoutValues } from "./variables.js";

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller;
  }
}

interface Call {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly operationName: string | undefined;
}

countIntrospection();

const wentWrong = "Something went wrong on our side; the server's log says what.";

/** The GraphQL API: POST runs a query, GET from a browser shows an explorer (contract: GraphQL API). */
export async function graphqlRoutes(app: FastifyInstance, parts: Context["parts"]): Promise<void> {
  app.setErrorHandler((error, request, reply) => {
    const refusal = asRefusal(error);
    if (!refusal) parts.emit({ type: "request.failed", requestId: request.id, route: "/graphql", error });
    const message = refusal?.message ?? wentWrong;
    if (refusal) reply.headers(refusal.headers);
    return send(reply, refusal?.status ?? 500, {
      errors: [{ message, extensions: { code: refusal?.code ?? "INTERNAL" } }],
    });
  });
  app.get("/", async (request, reply) => {
    if (!/\btext\/html\b/.test(request.headers.accept ?? ""))
      throw invalid("POST a JSON body with 'query' to this address.");
    const { html, policy } = explorerPage();
    return reply
      .header("content-type", "text/html; charset=utf-8")
      .header("content-security-policy", policy)
      .send(html);
  });
  app.post(
    "/",
    {
      onRequest: async (request) => {
        const { api_key: key } = request.query as { api_key?: string | string[] };
        if (Array.isArray(key)) throw invalid("'api_key' is given more than once.");
        const given = key ?? request.headers.authorization;
        request.caller =
          given === undefined && parts.publicCatalog ? nobody : await admitToManagement(parts, given, false);
        const encoding = request.headers["content-encoding"];
        if (encoding && encoding !== "identity") {
          throw new Refusal("UNSUPPORTED_ENCODING", "Send the body without a content encoding.");
        }
      },
    },
    (request, reply) => answer(parts, request, reply),
  );
}

/** A refusal for a caller's mistake, even one found before the route; undefined if the error is ours. */
function asRefusal(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  const { code, statusCode = 500 } = error as FastifyError;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return bodyTooLarge(limits.managementBytesMax);
  return statusCode >= 400 && statusCode < 500 ? malformed() : undefined;
}

/** Finding the line of a mistake means counting all lines before it. */
function hasManyLines(query: string): boolean {
  const ends = /[\n\r]/g;
  let lines = 1;
  while (lines <= limits.graphqlLinesMax && ends.test(query)) lines++;
  return lines > limits.graphqlLinesMax;
}

async function answer(parts: Context["parts"], request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (turns.isOver) await turns.take([request.caller.ownerNo]); // many queries may have come in this turn, and comparing fields takes long
  const call = readCall(request.body);
  if (hasManyLines(call.query)) {
    const message = `The query has more than ${limits.graphqlLinesMax} lines.`;
    return send(reply, 400, { errors: [coded(new GraphQLError(message), "GRAPHQL_PARSE_FAILED")] });
  }
  let document: DocumentNode;
  try {
    document = parse(call.query, { maxTokens: limits.graphqlTokensMax });
  } catch (error) {
    return send(reply, 400, { errors: [coded(error as GraphQLError, "GRAPHQL_PARSE_FAILED")] });
  }
  if (hasTooMany(document)) {
    const message = `The query selects more than ${limits.graphqlSelectionsMax} fields and fragments.`;
    return send(reply, 400, { errors: [coded(new GraphQLError(message), "GRAPHQL_VALIDATION_FAILED")] });
  }
  const mistakes = [...validate(schema, document, undefined, { maxErrors: limits.graphqlMistakesMax })];
  if (mistakes.length === 0 && tooDeep(document)) mistakes.push(new GraphQLError("The query is nested too deep."));
  if (mistakes.length > 0) {
    return send(reply, 400, { errors: mistakes.map((mistake) => coded(mistake, "GRAPHQL_VALIDATION_FAILED")) });
  }
  if (request.caller === nobody && !isPublic(document)) throw unauthorized();
  if (turns.isOver) await turns.take([request.caller.ownerNo]); // comparing its own may have used up this turn
  if (request.caller !== nobody) {
    const caller = presentCaller(parts, request.caller, hasMutation(document)); // the body may have taken minutes
    request.caller = callerOf(request, caller);
  }
  nameIgnored(reply, ignoredInputs({ document, ...call }));
  const made = new Answer((bytes) => request.room.take(bytes));
  const { signal } = made.over;
  const asked = {
    schema,
    document,
    rootValue: resolvers,
    contextValue: {
      parts,
      caller: request.caller,
      answer: made,
      seen: new Seen(parts, request.caller),
    } satisfies Context,
    variableValues: call.variables,
    operationName: call.operationName,
    fieldResolver: counting,
    abortSignal: signal,
    hideSuggestions: true,
    options: { maxCoercionErrors: 1 }, // each message holds the whole value
  };
  // it may throw at once: nothing about the schema is waited for
  const result = await (async () => execute(asked))().catch((error: unknown) => {
    throw signal.aborted ? signal.reason : error;
  });
  await made.hasRoom();
  const body = refusedOperation(parts, request, result);
  // without data nothing was run: the variables or the operation's name were wrong
  reply.code(result.data === undefined ? 400 : 200).header("content-type", jsonType);
  return made.isLarge ? request.room.send(reply, jsonPieces(body)) : reply.send(JSON.stringify(body));
}

/** Resolves a field, and counts its value in the reply. */
const counting: GraphQLFieldResolver<unknown, Context> = (source, args, context, info) => {
  const value = defaultFieldResolver(source, args, context, info);
  context.answer.add(value);
  return value;
};

function readCall(body: unknown): Call {
  const text = String(body);
  checkExtent(text, limits.graphqlInputFieldsMax); // the library would print every field of an object that does not fit
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Refusal("INVALID_JSON", 'The body is not JSON: send {"query": "…"}.');
  }
  const { query, variables, operationName } = (parsed ?? {}) as Record<string, unknown>;
  if (typeof query !== "string") throw invalid("The body must hold 'query', a GraphQL text.");
  if (variables !== undefined && variables !== null && (typeof variables !== "object" || Array.isArray(variables))) {
    throw invalid("'variables' must be a JSON object.");
  }
  return {
    query,
    variables: withoutEmptyEnums((variables ?? {}) as Record<string, unknown>) as Record<string, unknown>,
    operationName: typeof operationName === "string" ? operationName : undefined,
  };
}

/** Clients send an empty `flashBootType` in variables to leave it unchanged. */
function withoutEmptyEnums(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > limits.graphqlDepthMax) return value;
  if (Array.isArray(value)) return value.map((each) => withoutEmptyEnums(each, depth + 1));
  const kept = Object.entries(value).filter(([name, each]) => !(name === "flashBootType" && each === ""));
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutEmptyEnums(each, depth + 1)]));
}

/** The caller of a query without a key, where the catalog is public: it owns and sees nothing. */
const nobody: Caller = {
  no: 0,
  id: "",
  name: "",
  hash: "",
  prefix: "",
  ownerNo: 0,
  isAdmin: false,
  isBootstrap: false,
  scope: { kind: "endpoints", access: {} },
  createdAt: undefined,
  expiresAt: undefined,
  old: undefined,
};

const publicFields = new Set(["gpuTypes", "dataCenters", "listings", "allAiApiPublicConfigs", "__typename"]);

/** Whether a document selects nothing but the catalog (decisions: Management). */
const isPublic = (document: DocumentNode) =>
  document.definitions.every(
    (each) =>
      each.kind === Kind.OPERATION_DEFINITION &&
      each.operation === "query" &&
      each.selectionSet.selections.every(
        (selected) => selected.kind === Kind.FIELD && publicFields.has(selected.name.value),
      ),
  );

const hasMutation = (document: DocumentNode) =>
  document.definitions.some((each) => each.kind === Kind.OPERATION_DEFINITION && each.operation === "mutation");

/** Whether a query selects so much that comparing its fields pairwise would block the server. */
function hasTooMany(document: DocumentNode): boolean {
  let count = 0;
  const add = () => (++count > limits.graphqlSelectionsMax ? BREAK : undefined);
  visit(document, { Field: add, FragmentSpread: add, InlineFragment: add, FragmentDefinition: add });
  return count > limits.graphqlSelectionsMax;
}

/** The depth of plain selections. Fragments are bounded by the number of tokens, and cycles by validation. */
function tooDeep(document: DocumentNode): boolean {
  const depth = (set: SelectionSetNode | undefined): number =>
    set ? 1 + Math.max(0, ...set.selections.map((each) => ("selectionSet" in each ? depth(each.selectionSet) : 0))) : 0;
  // introspection nests types in types
  return document.definitions.some(
    (each) => "selectionSet" in each && depth(each.selectionSet) > limits.graphqlDepthMax + 4,
  );
}

/** An error with its code, and without values of the query's text. */
const coded = (error: GraphQLError, code: string) => ({
  ...error.toJSON(),
  message: withoutValues(error.message),
  extensions: { code },
});

function refusedOperation(parts: Context["parts"], request: FastifyRequest, result: ExecutionResult) {
  if (!result.errors) return { data: result.data };
  const errors = result.errors.map((error) => {
    const cause = error.originalError;
    if (cause instanceof Refusal) return coded(error, cause.code);
    const message = misfit(error);
    if (message !== undefined) return { ...coded(error, "INVALID_INPUT"), message };
    // the library reports bad arguments, too, with their place in the query; errors in our own results have no place
    if (!cause || (cause instanceof GraphQLError && cause.nodes)) return coded(error, "INVALID_INPUT");
    parts.emit({ type: "request.failed", requestId: request.id, route: "/graphql", error: cause });
    const { path } = error;
    return { message: wentWrong, path, extensions: { code: "INTERNAL" } };
  });
  return { ...(result.data === undefined ? {} : { data: result.data }), errors };
}

const jsonType = "application/json; charset=utf-8";

const send = (reply: FastifyReply, status: number, body: object) =>
  reply.code(status).header("content-type", jsonType).send(JSON.stringify(body));

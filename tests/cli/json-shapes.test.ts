import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeCommands } from "../../packages/cli/src/program.js";
import { root, startServer, type TestServer } from "../harness.js";
import { type Ended, millrace, millraceHere, toServer } from "./millrace.js";
import { delivered, type Receiver, startReceiver } from "./receiver.js";
import { differences, type Shape, shapeOf } from "./shapes.js";

const reference = readFileSync(join(root, "docs/reference/commands.md"), "utf8");

let server: TestServer;
let folder: string;
let receiver: Receiver;
let delivery: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  folder = mkdtempSync(join(tmpdir(), "millrace-shapes-"));
  writeFileSync(
    join(folder, "handler.js"),
    `export default async function* ({ text, fails, endless }) {
      console.log(text);
      if (fails) throw new Error("no text");
      if (endless) await new Promise(() => {});
      yield text ?? "x";
    }`,
  );
  writeFileSync(join(folder, "box.mjs"), "setInterval(() => {}, 60_000);");
  writeFileSync(join(folder, "inputs.jsonl"), '{"text":"a"}\n');
  writeFileSync(join(folder, "check.json"), '{"input":{"text":"hello"},"output":["hello"]}');
  await printed("deploy", ".", "--name", "shapes");
  const [endpoint] = (await printed("endpoint", "get", "shapes")) as { id: string }[];
  receiver = await startReceiver();
  delivery = await delivered(server, endpoint?.id as string, receiver);
}, 120_000);
afterAll(async () => {
  await server?.end();
  receiver?.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...words: string[]): Promise<Ended> => {
  const env = { ...toServer(server), MILLRACE_DATA_DIR: server.dataDir, HOME: folder };
  const how = words[0] === "dev" ? millrace : millraceHere; // an engine is a child of its own process
  return how([...words, "--json"], { env, folder });
};

/** What a command prints with --json, a value for each line. */
async function printed(...words: string[]): Promise<unknown[]> {
  const { out, err } = await run(...words);
  const lines = out.split("\n").filter((line) => line !== "");
  expect(lines.length, err).toBeGreaterThan(0);
  return lines.map((line) => JSON.parse(line));
}

const job = async (input = "{}", ...words: string[]) =>
  ((await printed("run", "shapes", input, ...words)) as { id: string }[])[0]?.id as string;
const box = ["imageName=.", `dockerStartCmd=${JSON.stringify([process.execPath, "box.mjs"])}`, "computeType=CPU"];

/** A call that prints a documented shape. */
interface Call {
  readonly words: () => Promise<readonly string[]>;
  /** The field of the documented type that is printed, if not all of it. */
  readonly part?: string;
  /** Whether each line has the shape, or is an entry of the documented array. */
  readonly isByLine?: true;
}
const as = (...words: string[]): Call => ({ words: async () => words });
const after = (prepare: () => Promise<unknown>, ...words: string[]): Call => ({
  words: async () => {
    await prepare();
    return words;
  },
});
const on = (words: () => Promise<readonly string[]>): Call => ({ words });

/** For each command a call for each shape in its help: first those of the API, then those that are written there. */
const calls: Readonly<Record<string, readonly Call[]>> = {
  dev: [as("dev", "handler.js", "--input", "{}"), { ...as("dev", "handler.js", "--test", "."), isByLine: true }],
  deploy: [as("deploy", ".", "--name", "shapes")],
  run: [
    as("run", "shapes", "{}"),
    as("run", "shapes", "{}", "--no-wait"),
    as("run", "shapes", "--batch", "inputs.jsonl", "--out", "results.jsonl"),
  ],
  status: [on(async () => ["status", "shapes", await job()])],
  stream: [{ ...on(async () => ["stream", "shapes", await job("{}", "--no-wait")]), isByLine: true }],
  cancel: [on(async () => ["cancel", "shapes", await job('{"endless":true}', "--no-wait")])],
  retry: [on(async () => ["retry", "shapes", await job('{"fails":true}')])],
  requests: [{ ...as("requests", "shapes"), part: "requests" }],
  health: [as("health", "shapes")],
  purge: [as("purge", "shapes", "--yes")],
  logs: [{ ...after(() => job('{"text":"a line"}'), "logs", "shapes"), isByLine: true }],
  workers: [after(() => job(), "workers", "shapes")],
  scaling: [as("scaling", "shapes")],
  releases: [as("releases", "shapes")],
  rollback: [after(() => printed("endpoint", "restart", "shapes"), "rollback", "shapes", "1")],
  ...noun("endpoint", ["templateId=shapes"], ["workersMax=1"], "restart"),
  ...noun("template", ["imageName=."], ["env.LEVEL=info"]),
  ...noun("volume", ["size=1", "dataCenterId=EU-RO-1"], ["size=2"]),
  ...noun("pod", box, ["env.LEVEL=info"], "stop", "start", "restart", "reset"),
  ...noun("secret", ["value=a-secret"], ["value=another-secret"]),
  ...noun("registry", ["username=me", "password=123456"], ["username=you", "password=654321"]),
  ...noun("key", ["scope=read"], ["scope=all"], "rotate"),
  ...noun("user", ["quotas.workers=4"], ["spendLimit=2.5"]),
  "webhook list": [as("webhook", "list")],
  "webhook get": [on(async () => ["webhook", "get", receiver.origin])],
  "webhook pause": [on(async () => ["webhook", "pause", receiver.origin])],
  "webhook resume": [on(async () => ["webhook", "resume", receiver.origin])],
  "webhook deliveries": [as("webhook", "deliveries")],
  "webhook secret": [as("webhook", "secret")],
  "webhook redeliver": [on(async () => ["webhook", "redeliver", delivery])],
  "price list": [as("price", "list")],
  "price update": [as("price", "update", 'gpus={"NVIDIA L4":0.5}')],
  "price delete": [as("price", "delete", "NVIDIA L4")],
  audit: [as("audit")],
  "context list": [after(() => run("context", "add", "rack", "--url", server.url), "context", "list")],
  top: [as("top")],
  bench: [as("bench", "shapes", "--jobs", "2")],
  backup: [as("backup", "copy")],
  restore: [as("restore", "copy", "--data", "restored")],
  doctor: [as("doctor")],
};

/** A noun's commands, from its creation to its deletion; each is called after those before it. */
function noun(name: string, created: string[], updated?: string[], ...actions: string[]): Record<string, Call[]> {
  const at = (field: string) => (field === "imageName=." ? `imageName=${folder}` : field);
  return {
    [`${name} create`]: [on(async () => [name, "create", "name=one", ...created.map(at)])],
    [`${name} list`]: [as(name, "list")],
    [`${name} get`]: [as(name, "get", "one")],
    ...(updated ? { [`${name} update`]: [as(name, "update", "one", ...updated)] } : {}),
    ...Object.fromEntries(actions.map((action) => [`${name} ${action}`, [as(name, action, "one")]])),
    [`${name} delete`]: [as(name, "delete", "one", "--yes")],
  };
}

/** Commands that print no JSON, and why. */
const silent: Readonly<Record<string, string>> = {
  serve: "it is the service, and writes its log",
  "context add": "it says what it has kept",
  "context use": "it says what it has kept",
  "context remove": "it says what it has forgotten",
  completion: "it prints a shell's script",
};

/** The commands that do something, with their help. */
const commands = describeCommands().map(({ name, help }) => ({ name: name.replace(/^millrace ?/, ""), help }));
const leaves = commands.filter(({ name }) => name !== "" && !commands.some((each) => each.name.startsWith(`${name} `)));

/** The type of an operation's reply, as the reference has it. */
function replyShape(operation: string): Shape {
  const section = reference.split(/^### Shape \d+\n/m).find((each) => each.split("\n").some(isOf(operation))) as string;
  const shape = shapeOf(section.split("```")[1]?.replace(/^ts/, "") as string);
  return section.includes(`- ${operation}, an array`) ? { is: "array", of: shape } : shape;
}
const isOf = (operation: string) => (line: string) => line === `- ${operation}` || line === `- ${operation}, an array`;

/** The shapes in a command's help: those of the API first, then those that are written there. */
function shapesIn(help: string): Shape[] {
  const note = (/^With --json: [\s\S]*?\.$/m.exec(help)?.[0] ?? "").replaceAll(/\s+/g, " ");
  const names: Record<string, Shape> = {};
  const replies: Shape[] = [];
  for (const [, name, operation] of note.matchAll(/(?:(\w+) is what )?((?:GET|POST|PUT|PATCH) \/[^\s;,.]+)/g)) {
    const shape = replyShape(operation as string);
    if (name) names[name] = shape;
    else replies.push(shape);
  }
  const written = [...note.matchAll(/(?:(\w+) is )?(\{ [^{}]*\}(?:\[\])?)/g)].reverse();
  const own: Shape[] = [];
  for (const [, name, type] of written) {
    const shape = shapeOf(type as string, names);
    if (name) names[name] = shape;
    else own.unshift(shape);
  }
  return [...replies, ...own];
}

describe("What --json prints", () => {
  it("is compared with its help for every command, in each of the shapes that the help gives", () => {
    const wanted = leaves.map(({ name, help }) => [name, name in silent ? 0 : shapesIn(help).length]);
    const compared = leaves.map(({ name }) => [name, calls[name]?.length ?? (name in silent ? 0 : "never")]);
    expect(compared).toEqual(wanted);
    expect([...Object.keys(calls), ...Object.keys(silent)].sort()).toEqual(leaves.map(({ name }) => name).sort());
    expect(leaves.filter(({ name, help }) => !(name in silent) && shapesIn(help).length === 0)).toEqual([]);
  });

  const each = Object.entries(calls).flatMap(([name, some]) => some.map((how, n) => ({ name, how, n })));
  it.each(each)(
    "of millrace $name has the shape $n that its help gives",
    { timeout: 60_000 },
    async ({ name, how, n }) => {
      const { help = "" } = leaves.find((leaf) => leaf.name === name) ?? {};
      const shape = partOf(shapesIn(help)[n] as Shape, how);
      const lines = await printed(...(await how.words()));
      if (!how.isByLine) expect(lines).toHaveLength(1);
      for (const value of lines) {
        if (Array.isArray(value)) expect(value).not.toEqual([]);
        expect(differences(value, shape)).toEqual([]);
      }
    },
  );
});

/** The part of a documented type that a line has. */
function partOf(shape: Shape, { part, isByLine }: Call): Shape {
  const printed = part !== undefined && shape.is === "object" ? (shape.fields.get(part)?.of as Shape) : shape;
  return isByLine && printed.is === "array" ? printed.of : printed;
}

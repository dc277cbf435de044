import type { Prices } from "@millrace/api";
import type { Command } from "commander";
import { asCalled, called, shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import { examples } from "../examples.js";
import { exits, Failure } from "../exit.js";
import { type Fields, readFields } from "../fields.js";
import { jsonNote } from "../json-note.js";
import { answerText, fieldsText } from "../nouns/answers.js";
import { asWords, chosen, type Given, inWords, namesOf, offer, pathWith } from "../nouns/choices.js";
import { type Noun, nouns, word } from "../nouns/nouns.js";
import { withIds } from "../nouns/references.js";
import { find, listOf, type Resource, wordFor } from "../nouns/resources.js";
import type { Column } from "../output/table.js";
import type { Terminal } from "../output/terminal.js";
import type { Tools } from "../tools.js";
import { deliveryCommands } from "./deliveries.js";

/**
 * What can be done with each kind of resource, from the first look at one to its deletion: the examples can be called in
 * this order.
 */
export function nounCommands(program: Command, tools: Tools): void {
  for (const noun of nouns) {
    const { create, update, instead = {}, loss, actions = {} } = noun;
    const first = [calling(noun, "list"), ...(create === undefined ? [] : [createCall(noun, create)])];
    const group = program
      .command(noun.noun)
      .description(noun.about)
      .addHelpText("after", examples(...first));
    listing(group, noun, tools);
    if (create !== undefined) creating(group, noun, create, tools);
    getting(group, noun, tools);
    if (update !== undefined) updating(group, noun, update, tools);
    for (const [verb, [why, hint]] of Object.entries(instead)) absent(group, verb, why, hint);
    for (const [action, about] of Object.entries(actions)) acting(group, noun, { action, about }, tools);
    if (noun.noun === "webhook") deliveryCommands(group, tools);
    if (loss) deleting(group, noun, loss, tools);
  }
  prices(program, tools);
}

const calling = ({ noun }: Noun, ...words: string[]): string => ["millrace", noun, ...words].join(" ");
const oneOf = (noun: Noun): string => `${/^[aeio]/.test(wordFor(noun)) ? "an" : "a"} ${wordFor(noun)}`;
const manyOf = (noun: Noun): string => `${wordFor(noun)}s`.replace(/rys$/, "ries");
const createCall = (noun: Noun, fields: string): string => calling(noun, "create", `name=${noun.called}`, fields);

function listing(group: Command, noun: Noun, tools: Tools): void {
  const fill = noun.fill ?? createCall(noun, noun.create ?? "");
  const choices = noun.choices?.list;
  offer(group.command("list"), choices)
    .description(`List ${manyOf(noun)}.`)
    .addHelpText("after", jsonNote(`an array, as GET ${noun.path} returns it`))
    .addHelpText("after", examples(calling(noun, "list")))
    .action(async (given: Given, command: Command) => {
      const calls = tools.calls(command);
      const rows = await listOf(calls, { ...noun, path: pathWith(noun.path, await chosen(calls, choices, given)) });
      tools.terminal(command).table(rows, noun.columns, `None yet. ${fill}`);
    });
}

function getting(group: Command, noun: Noun, tools: Tools): void {
  group
    .command("get")
    .description(`Show ${oneOf(noun)} with all its fields.`)
    .addHelpText("after", jsonNote(`the ${wordFor(noun)}, as GET ${noun.path}/{id} returns it`))
    .addHelpText("after", examples(calling(noun, "get", noun.called)))
    .argument(`<${wordFor(noun)}>`, noun.given ?? "its name or id")
    .action(async (given: string, _: object, command: Command) => {
      const calls = tools.calls(command);
      const { id } = await find(calls, noun, given);
      const found = await calls.call<Resource>("GET", `${noun.path}/${id}`);
      const terminal = tools.terminal(command);
      terminal.result(found, fieldsText(terminal, found));
    });
}

const fieldsHelp = `
A field is name=value; a value is JSON if it can be, else text. @file is the text of a file, - that of standard input,
and env.NAME=value sets one variable. A single @file.json has all fields.`;

/** Which fields take names. */
function fieldsHelpOf({ references = {} }: Noun): string {
  const names = Object.keys(references);
  if (names.length === 0) return fieldsHelp;
  const listed = names.join(", ").replace(/, ([^,]*)$/, " and $1");
  return `${fieldsHelp}\nA name stands for an id in ${listed}.`;
}

/** The fields that a command line gives for one, with ids in place of names. */
async function fieldsFrom(
  written: readonly string[],
  { references = {} }: Noun,
  { folder, streams }: Tools,
  calls: Calls,
  before: Fields = {},
): Promise<Fields> {
  const names = Object.keys(references);
  return withIds(calls, references, await readFields(written, { folder, stdin: streams.in, before, names }));
}

function creating(group: Command, noun: Noun, example: string, tools: Tools): void {
  group
    .command("create")
    .description(`Create ${oneOf(noun)}.`)
    .addHelpText("after", jsonNote(`the new ${wordFor(noun)}, as POST ${noun.path} returns it`))
    .argument("<fields...>", "its fields, as name=value")
    .addHelpText("after", `${fieldsHelpOf(noun)}\n${examples(createCall(noun, example))}`)
    .action(async (given: string[], _: object, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const fields = await fieldsFrom(given, noun, tools, calls);
      const made = await calls.call<Resource>("POST", noun.path, { ...noun.defaults, ...fields });
      const next = (noun.next?.(made, calls.url) ?? []).map((line) => asCalled(line, called(tools.env, tools.folder)));
      terminal.result(made, answerText(terminal, noun.columns, made, next));
    });
}

function updating(group: Command, noun: Noun, example: string, tools: Tools): void {
  group
    .command("update")
    .description(`Change some fields of ${oneOf(noun)}.`)
    .addHelpText(
      "after",
      jsonNote(`the changed ${wordFor(noun)}, as ${noun.change ? "GET" : "PATCH"} ${noun.path}/{id} returns it`),
    )
    .argument(`<${wordFor(noun)}>`, noun.given ?? "its name or id")
    .argument("<fields...>", "the changed fields, as name=value")
    .addHelpText("after", `${fieldsHelpOf(noun)}\n${examples(calling(noun, "update", noun.called, example))}`)
    .action(async (given: string, written: string[], _: object, command: Command) => {
      const calls = tools.calls(command);
      const before = await find(calls, noun, given);
      const fields = await fieldsFrom(written, noun, tools, calls, before);
      const changed = noun.change
        ? await noun.change(calls, before, fields)
        : await calls.call<Resource>("PATCH", `${noun.path}/${before.id}`, fields);
      const terminal = tools.terminal(command);
      const isRenamed = fields.name !== undefined && given !== before.id;
      const next = asCalled(
        calling(noun, "get", isRenamed ? word(changed) : shellWord(given)),
        called(tools.env, tools.folder),
      );
      terminal.result(changed, answerText(terminal, noun.columns, changed, [next]));
    });
}

/** Tells people who try what cannot be done how they get what they want. */
function absent(group: Command, verb: string, why: string, hint: string): void {
  group
    .command(verb, { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .action(() => {
      throw new Failure(exits.usage, why, hint);
    });
}

function deleting(group: Command, noun: Noun, loss: NonNullable<Noun["loss"]>, tools: Tools): void {
  const choices = noun.choices?.delete;
  offer(group.command("delete"), choices)
    .description(`Delete ${oneOf(noun)}.`)
    .addHelpText("after", jsonNote("what is gone", "{ deleted: string }"))
    .argument(`<${wordFor(noun)}>`, noun.given ?? "its name or id")
    .option("--yes", "do not ask")
    .addHelpText("after", examples(calling(noun, "delete", noun.called, "--yes")))
    .action(async (given: string, options: Given, command: Command) => {
      const calls = tools.calls(command);
      const found = await find(calls, noun, given);
      const fields = await chosen(calls, choices, options);
      const again = (...words: string[]) => calling(noun, "delete", shellWord(given), ...words);
      if (!options.yes) {
        const why = `This deletes the ${wordFor(noun)} "${given}": ${loss(found, options)}.`;
        await tools.terminal(command).confirm(why, again(...asWords(choices, options), "--yes"));
      }
      if (noun.remove) await noun.remove(calls, found);
      else {
        const asked = calls.call("DELETE", pathWith(`${noun.path}/${found.id}`, fields));
        const names = new Map([[found.id, given], ...namesOf(choices, options, fields)]);
        await inWords(asked, { choices, names, call: again() });
      }
      tools.terminal(command).result({ deleted: found.id }, `${given} is deleted.`);
    });
}

function acting(group: Command, noun: Noun, { action, about }: { action: string; about: string }, tools: Tools): void {
  const choices = noun.choices?.[action];
  offer(group.command(action), choices)
    .description(about)
    .addHelpText("after", jsonNote(`what POST ${noun.path}/{id}/${action} returns`))
    .addHelpText("after", examples(calling(noun, action, noun.called)))
    .argument(`<${wordFor(noun)}>`, noun.given ?? "its name or id")
    .action(async (given: string, options: Given, command: Command) => {
      const calls = tools.calls(command);
      const before = await find(calls, noun, given);
      const fields = await chosen(calls, choices, options);
      const body = await calls.call<Resource>("POST", `${noun.path}/${before.id}/${action}`, fields);
      const terminal = tools.terminal(command);
      terminal.result(body, answerText(terminal, noun.columns, body));
      const unchanged = noun.unchanged?.(before, body);
      if (unchanged !== undefined) terminal.say(unchanged);
    });
}

/** Prices are one table, which is replaced as a whole. */
function prices(program: Command, tools: Tools): void {
  const update = `millrace price update vcpu=0.01 gpus='{"NVIDIA L4":0.44}'`;
  const group = program
    .command("price")
    .description("Prices of GPUs, processors, memory and volumes, an hour.")
    .addHelpText("after", examples("millrace price list", update));
  const show = (terminal: Terminal, table: Prices) => terminal.result(table, terminal.tableText(rowsOf(table), priced));
  group
    .command("list")
    .alias("get")
    .description("Show the prices.")
    .addHelpText("after", jsonNote("the prices, as GET /v1/prices returns them"))
    .addHelpText("after", examples("millrace price list"))
    .action(async (_: object, command: Command) => {
      show(tools.terminal(command), await tools.calls(command).call<Prices>("GET", "/v1/prices"));
    });
  const change = async (command: Command, fieldsOf: (before: Prices) => Promise<object>) => {
    const calls = tools.calls(command);
    const before = await calls.call<Prices>("GET", "/v1/prices");
    show(
      tools.terminal(command),
      await calls.call<Prices>("PUT", "/v1/prices", { ...before, ...(await fieldsOf(before)) }),
    );
  };
  group
    .command("update")
    .alias("create")
    .description("Set the prices (for admins); those that are not given stay.")
    .addHelpText("after", jsonNote("the prices, as PUT /v1/prices returns them"))
    .argument("<fields...>", "prices, as name=value")
    .addHelpText("after", `${fieldsHelp}\n${examples(update)}`)
    .action((given: string[], _: object, command: Command) =>
      change(command, (before) =>
        readFields(given, { folder: tools.folder, stdin: tools.streams.in, before: { ...before } }),
      ),
    );
  group
    .command("delete")
    .description("Delete the price of a kind of GPU (for admins): it costs nothing from now on.")
    .addHelpText("after", jsonNote("the prices, as PUT /v1/prices returns them"))
    .argument("<gpu>", "its kind, as millrace price list shows it")
    .addHelpText("after", examples(`millrace price delete "NVIDIA L4"`))
    .action((gpu: string, _: object, command: Command) =>
      change(command, async ({ gpus }) => {
        if (!Object.hasOwn(gpus, gpu))
          throw new Failure(exits.usage, `There is no price for "${gpu}".`, "millrace price list");
        const { [gpu]: _, ...others } = gpus;
        return { gpus: others };
      }),
    );
}

interface Price {
  readonly of: string;
  readonly price: number;
}

const priced: readonly Column<Price>[] = [
  { title: "an hour of", of: ({ of }) => of },
  { title: "costs", of: ({ price }) => price },
];

const rowsOf = ({ gpus, vcpu, memoryGb, volumeGb }: Prices): Price[] => [
  ...Object.entries(gpus).map(([type, price]) => ({ of: type, price })),
  { of: "a virtual processor", price: vcpu },
  { of: "a GB of memory", price: memoryGb },
  { of: "a GB of a network volume", price: volumeGb },
];

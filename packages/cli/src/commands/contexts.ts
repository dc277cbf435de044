import type { Command } from "commander";
import { shellWord } from "../called.js";
import { readContexts, writeContexts } from "../contexts.js";
import { examples } from "../examples.js";
import { exits, Failure } from "../exit.js";
import { jsonNote } from "../json-note.js";
import type { Tools } from "../tools.js";

/** Commands for the servers that a user works with. */
export function contextCommands(program: Command, tools: Tools): void {
  const { env } = tools;
  const adding = "MILLRACE_API_KEY=$(cat key.txt) millrace context add rack --url https://rack.example:8000";
  const noun = program
    .command("context")
    .description("Contexts: servers, and your keys for them.")
    .addHelpText("after", examples(adding, "millrace context use rack"));
  noun
    .command("add")
    .description("Keep a server and a key, and use them from now on.")
    .argument("<name>", "what you call it")
    .option("--url <url>", "the server's address, such as http://127.0.0.1:8000; MILLRACE_URL unless given")
    .addHelpText(
      "after",
      `\nThe key is read from MILLRACE_API_KEY; from a file it comes into no shell's history.\n${examples(adding)}`,
    )
    .action((name: string, { url = env.MILLRACE_URL }: { url?: string }, command: Command) => {
      const key = env.MILLRACE_API_KEY;
      if (!url)
        throw new Failure(
          exits.usage,
          "There is no address: neither --url nor MILLRACE_URL gives one.",
          `millrace context add ${shellWord(name)} --url http://127.0.0.1:8000`,
        );
      if (!key)
        throw new Failure(
          exits.usage,
          "MILLRACE_API_KEY is not set: it gives the key.",
          `MILLRACE_API_KEY=$(cat key.txt) millrace context add ${shellWord(name)} --url ${url}`,
        );
      if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
        throw new Failure(exits.usage, `"${url}" is not a server's address.`, "--url http://127.0.0.1:8000");
      const { contexts } = readContexts(env);
      writeContexts(env, { current: name, contexts: { ...contexts, [name]: { url, key } } });
      tools.terminal(command).say(`Context ${name} is used from now on.`);
    });
  noun
    .command("use")
    .description("Speak to this server from now on.")
    .addHelpText("after", examples("millrace context use rack"))
    .argument("<name>")
    .action((name: string, _: object, command: Command) => {
      const { contexts } = readContexts(env);
      if (!Object.hasOwn(contexts, name))
        throw new Failure(exits.usage, `There is no context "${name}".`, "millrace context list");
      writeContexts(env, { current: name, contexts });
      tools.terminal(command).say(`Context ${name} is used from now on.`);
    });
  noun
    .command("list")
    .description("List the servers that you keep.")
    .addHelpText(
      "after",
      jsonNote(
        "the contexts, with the beginning of each key",
        "{ name: string, url: string, key: string, isCurrent: boolean }[]",
      ),
    )
    .addHelpText("after", examples("millrace context list"))
    .action((_: object, command: Command) => {
      const { current, contexts } = readContexts(env);
      const rows = Object.entries(contexts).map(([name, { url, key }]) => ({
        name,
        url,
        key: `${key.slice(0, 6)}…`,
        isCurrent: name === current,
      }));
      tools.terminal(command).table(
        rows,
        [
          { title: "", of: ({ isCurrent }) => (isCurrent ? "*" : "") },
          { title: "name", of: ({ name }) => name },
          { title: "server", of: ({ url }) => url },
          { title: "key", of: ({ key }) => key },
        ],
        "No contexts. millrace context add NAME --url URL",
      );
    });
  noun
    .command("remove")
    .description("Forget a server and its key.")
    .addHelpText("after", examples("millrace context remove rack"))
    .argument("<name>")
    .action((name: string, _: object, command: Command) => {
      const { current, contexts } = readContexts(env);
      if (!Object.hasOwn(contexts, name))
        throw new Failure(exits.usage, `There is no context "${name}".`, "millrace context list");
      const { [name]: _gone, ...left } = contexts;
      writeContexts(env, { contexts: left, ...(current === undefined || current === name ? {} : { current }) });
      tools.terminal(command).say(`Context ${name} is forgotten.`);
    });
}

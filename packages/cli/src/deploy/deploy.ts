import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { Endpoint } from "@millrace/api";
import { called, shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import { findHandler, type HandlerFile, startCommand } from "../dev/handler.js";
import { findPython } from "../dev/python.js";
import { exits, Failure } from "../exit.js";
import type { Terminal } from "../output/terminal.js";
import { saveByName } from "../saved.js";
import type { Tools } from "../tools.js";
import { codeIn } from "./code.js";
import { readConfig } from "./config.js";
import { DeployedHere, withDefaults } from "./deployed.js";
import { fieldsOf } from "./fields.js";

export interface DeployOptions {
  readonly name?: string;
  readonly image?: string;
  readonly build?: true;
}

/** Creates or updates the template and the endpoint that a folder describes, and says how to call it. */
export async function deploy(
  tools: Tools,
  terminal: Terminal,
  calls: Calls,
  given: string,
  options: DeployOptions,
): Promise<void> {
  const at = resolve(tools.folder, given);
  const named = statSync(at, { throwIfNoEntry: false })?.isFile() ? findHandler(at, tools.folder) : undefined;
  const folder = named?.folder ?? at;
  const config = readConfig(folder);
  const name = options.name ?? config.name ?? named?.name ?? basename(folder);
  const done = (what: string, words: string) =>
    terminal.isJson || terminal.print(`  ${terminal.styled("green", "✓")} ${what.padEnd(20)} ${words}`);
  const image = options.build ? await build(folder, name, terminal) : (options.image ?? config.image);
  if (image !== undefined) done("image", image);
  const source =
    image === undefined ? await local(tools, terminal, calls, at, done) : { imageName: image, command: [] };
  const deployed = new DeployedHere(tools.env, calls.url);
  const fields = await fieldsOf(calls, config, source);
  const saved = await saveByName(calls, name, fields, (id) => withDefaults(deployed.at(id), fields));
  const { template, isNew } = saved;
  // the server does not see that the files in a folder change
  const code = image === undefined ? codeIn(folder) : undefined;
  const hasNewCode = code !== undefined && !isNew && !saved.isReplaced && deployed.at(saved.endpoint.id).code !== code;
  deployed.keep(saved.endpoint.id, fields, code);
  const endpoint = hasNewCode
    ? await calls.call<Endpoint>("POST", `/v1/endpoints/${saved.endpoint.id}/restart`)
    : saved.endpoint;
  done(`template ${name}`, template.imageName);
  const { version, workersMin, workersMax } = endpoint;
  const how = isNew ? "made" : `version ${version}${hasNewCode ? " with the changed code" : ""}`;
  done(`endpoint ${name}`, `${how}, workers ${workersMin}–${workersMax}`);
  const url = `${calls.url}/v2/${endpoint.id}`;
  const call = `curl -s ${url}/runsync -H "Authorization: Bearer ${calls.pastedKey}" -d '{"input":{"text":"hello"}}'`;
  terminal.result(
    { name, id: endpoint.id, version: endpoint.version, templateId: template.id, url, isNew },
    endpoint.type === "LB"
      ? `\n  ${calls.url}/lb/${endpoint.id}`
      : `\n  ${called(tools.env, tools.folder)} run ${shellWord(name)} '{"text":"hello"}'\n  ${call}`,
  );
}

/** The handler in a folder of the server's own machine, or a file that is one, with what it needs. */
async function local(
  tools: Tools,
  terminal: Terminal,
  calls: Calls,
  at: string,
  done: (what: string, words: string) => unknown,
): Promise<{ imageName: string; command: readonly string[] }> {
  if (!/^https?:\/\/(127\.|localhost\b|\[::1\])/.test(calls.url))
    throw new Failure(
      exits.usage,
      `${calls.url} is another machine's, which has no ${at}: deploy an image.`,
      "millrace deploy --build, or --image",
    );
  const handler: HandlerFile = findHandler(at, tools.folder);
  const python = handler.isPython ? await findPython(handler, tools.env, terminal.say) : undefined;
  done(handler.file, python?.words ?? "");
  return { imageName: handler.folder, command: startCommand(handler, python?.python) };
}

/** Builds the folder's Dockerfile into an image of the local engine, under a new tag each time. */
async function build(folder: string, name: string, terminal: Terminal): Promise<string> {
  if (!existsSync(join(folder, "Dockerfile")))
    throw new Failure(
      exits.usage,
      `There is no Dockerfile in ${folder}.`,
      "docs/guide/images.md has one to begin with",
    );
  const image = `millrace/${name.toLowerCase().replace(/[^a-z0-9._-]+/g, "-")}:${Date.now().toString(36)}`;
  terminal.say(`building ${image} …`);
  const child = spawn("docker", ["build", "--quiet", "--tag", image, folder], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (part) => (errors = `${errors}${part}`.slice(-4_000)));
  const code = await new Promise<number | null>((end) => {
    child.once("error", ({ message }) => {
      errors = message;
      end(null);
    });
    child.once("close", end);
  });
  if (code === 0) return image;
  if (code === null || /connect to the docker daemon|docker daemon running/i.test(errors))
    throw new Failure(exits.failed, "No Docker engine answers here, which would build the image.", "millrace doctor");
  throw new Failure(exits.failed, `The image could not be built:\n${errors.trimEnd()}\n`, `docker build ${folder}`);
}

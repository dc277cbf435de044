import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseToml } from "smol-toml";
import Type, { type Static } from "typebox";
import { Value } from "typebox/value";
import { parse as parseYaml } from "yaml";
import { exits, Failure } from "../exit.js";

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
const whole = (minimum: number, description: string) => Type.Optional(Type.Integer({ minimum, description }));
const texts = (description: string) => Type.Optional(Type.Array(Type.String({ minLength: 1 }), { description }));

/** What `millrace.toml` or `millrace.yaml` says of an endpoint. */
export const DeployConfig = Type.Object(
  {
    name: text("What the endpoint is called; the folder's name by default."),
    image: text("A container image; without it workers run the handler in this folder."),
    command: texts("The command that starts a worker, if not the image's or the handler's own."),
    ports: texts("Ports of a container, such as 8000/http."),
    disk_gb: whole(1, "The size of a container's own disk."),
    registry: text("Credentials for the image's registry: a name from millrace registry list."),
    volumes: texts("Network volumes: names from millrace volume list."),
    kind: Type.Optional(
      Type.Union([Type.Literal("queue"), Type.Literal("load_balancer")], {
        description: "queue: jobs wait for workers. load_balancer: HTTP requests go straight to them.",
      }),
    ),
    gpus: texts("GPU types, in order of preference; any GPU if there is neither this nor cpus."),
    gpu_count: whole(1, "GPUs for each worker."),
    cuda: text("The least CUDA version that workers need, such as 12.4."),
    place: Type.Optional(
      Type.String({
        pattern: "^(machines|cluster(/.+)?)$",
        description:
          "Where workers run: machines of the servers, any cluster, or one, as cluster/name. By default as the server is set.",
      }),
    ),
    pod_class: text("The pod class of its workers in a cluster, as the operator has set it up."),
    cpus: whole(1, "vCPUs for each worker, instead of GPUs."),
    scaling: Type.Optional(
      Type.Object(
        {
          workers_min: whole(0, "Workers that are always there."),
          workers_max: whole(0, "The most workers at a time."),
          idle_timeout: whole(1, "Seconds before an idle worker ends."),
          queue_delay: whole(1, "Start another worker when a job has waited for this many seconds."),
          requests_per_worker: whole(1, "Start as many workers as this number of jobs for each needs."),
        },
        { additionalProperties: false },
      ),
    ),
    timeout: whole(5, "Seconds that a job may run."),
    flashboot: Type.Optional(Type.Boolean({ description: "Whether idle workers are frozen instead of ended." })),
    env: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Union([
          Type.String(),
          Type.Number(),
          Type.Boolean(),
          Type.Object({ secret: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
        ]),
        { description: 'Variables for workers: a value, or { secret = "name" } for one from millrace secret list.' },
      ),
    ),
  },
  { additionalProperties: false, title: "millrace.toml", description: "An endpoint, as millrace deploy makes it." },
);
export type DeployConfig = Static<typeof DeployConfig>;

const names = ["millrace.toml", "millrace.yaml", "millrace.yml"] as const;

/** What a folder's file says of its endpoint; nothing if there is none. */
export function readConfig(folder: string): DeployConfig {
  const found = names.filter((name) => existsSync(join(folder, name)));
  const [file] = found;
  if (file === undefined) return {};
  if (found.length > 1) throw new Failure(exits.usage, `${folder} has ${found.join(" and ")}: keep one of them.`);
  const value = parsed(file, readFileSync(join(folder, file), "utf8")) ?? {};
  if (Value.Check(DeployConfig, value)) return value;
  throw new Failure(exits.usage, `${file}: ${complaint(value)}.`, "millrace deploy --help");
}

function parsed(file: string, written: string): unknown {
  try {
    return file.endsWith(".toml") ? parseToml(written) : parseYaml(written);
  } catch (error) {
    const [what] = (error as Error).message.split("\n");
    throw new Failure(exits.usage, `${file} is not valid: ${what}`);
  }
}

/** The first mistake in words. */
function complaint(value: unknown): string {
  const [error] = Value.Errors(DeployConfig, value);
  if (!error) return "it is not valid";
  const at = error.instancePath.slice(1).replaceAll("/", ".");
  if (error.keyword === "boolean") {
    // a name that no schema has
    const { scaling } = DeployConfig.properties;
    const known = Object.keys(at.startsWith("scaling.") ? scaling.properties : DeployConfig.properties);
    return `"${at}" is unknown; there are ${known.join(", ")}`;
  }
  return `"${at}" ${error.message}`;
}

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import type Docker from "dockerode";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Where an engine listens, found as its own command line does: DOCKER_HOST, DOCKER_CONTEXT, the current context, the
 * default socket.
 */
export interface EngineAddress {
  /** `unix:///path`, or `tcp://host:port`. */
  readonly host: string;
  /** The directory with ca.pem, cert.pem and key.pem, if it uses TLS. */
  readonly certificates: string | undefined;
}

const defaultHost = "unix:///var/run/docker.sock";

export function engineAddress(env: Environment): EngineAddress {
  if (env.DOCKER_HOST) {
    const isVerified = env.DOCKER_TLS_VERIFY !== undefined && env.DOCKER_TLS_VERIFY !== "";
    const folder = env.DOCKER_CERT_PATH || join(homedir(), ".docker");
    return { host: env.DOCKER_HOST, certificates: isVerified ? folder : undefined };
  }
  const folder = env.DOCKER_CONFIG || join(homedir(), ".docker");
  const name = env.DOCKER_CONTEXT || textIn(join(folder, "config.json"), ["currentContext"]);
  if (name === undefined || name === "" || name === "default") return { host: defaultHost, certificates: undefined };
  const id = createHash("sha256").update(name).digest("hex");
  const host = textIn(join(folder, "contexts/meta", id, "meta.json"), ["Endpoints", "docker", "Host"]);
  if (host === undefined) throw new Error(`there is no Docker context '${name}' (docker context ls lists them)`);
  const certificates = join(folder, "contexts/tls", id, "docker");
  return { host, certificates: readable(join(certificates, "ca.pem")) === undefined ? undefined : certificates };
}

/** A text in another program's JSON file, by the names on the way to it; undefined if there is none. */
function textIn(path: string, names: readonly string[]): string | undefined {
  const text = readable(path);
  try {
    let value: unknown = text === undefined ? undefined : JSON.parse(text);
    for (const name of names) value = (value as Record<string, unknown> | null | undefined)?.[name];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function readable(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** A container engine. */
export interface Engine {
  readonly docker: Docker;
  /** Its address, for messages. */
  readonly host: string;
  /** The network of workers' containers. */
  readonly network: string;
  /** The address of its machine where templates' ports are published; undefined if they are not. */
  readonly publishOn: string | undefined;
  /** Whether network volumes are the engine's own volumes, not directories of its machine. */
  readonly keepsVolumes: boolean;
}

/** The options of an engine that concern its workers. */
export type EngineOptions = Partial<Pick<Engine, "network" | "publishOn" | "keepsVolumes">>;

/** Docker's default network, on which containers reach each other. */
export const defaultNetwork = "bridge";

/** Opens an engine. Its library is loaded on first use, because that takes longer than the rest of the start. */
export function openEngine(
  address: EngineAddress,
  { network = defaultNetwork, publishOn, keepsVolumes = false }: EngineOptions = {},
): Engine {
  let docker: Docker | undefined;
  const options = optionsOf(address);
  return {
    host: address.host,
    network,
    publishOn,
    keepsVolumes,
    get docker() {
      docker ??= new (createRequire(import.meta.url)("dockerode") as typeof Docker)(options);
      return docker;
    },
  };
}

/** Sets every option, because the library takes missing ones from the environment. */
function optionsOf({ host, certificates }: EngineAddress): Docker.DockerOptions {
  if (host.startsWith("unix://")) {
    return { socketPath: host.slice("unix://".length), host: undefined } as unknown as Docker.DockerOptions;
  }
  const [, name, port] = /^tcp:\/\/([^/:]+|\[[^\]]+\])(?::(\d+))?\/?$/.exec(host) ?? [];
  if (name === undefined)
    throw new Error(`the container engine's address ${host} is neither unix:///… nor tcp://host:port`);
  const isSecret = certificates !== undefined;
  const pem = (file: string) => readable(join(certificates ?? "", `${file}.pem`));
  return {
    protocol: isSecret ? "https" : "http",
    host: name.replace(/^\[|\]$/g, ""),
    port: Number(port ?? (isSecret ? 2376 : 2375)),
    ...(isSecret ? { ca: pem("ca"), cert: pem("cert"), key: pem("key") } : {}),
  } as Docker.DockerOptions;
}

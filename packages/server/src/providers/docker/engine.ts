import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where an engine listens, as its own command line finds it: DOCKER_HOST, DOCKER_CONTEXT, the current context, the default socket. */
export interface EngineAddress {
  /** `unix:///path`, or `tcp://host:port`. */
  readonly host: string;
  /** The folder with ca.pem, cert.pem and key.pem, where it asks for them. */
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
  const name = env.DOCKER_CONTEXT || jsonOf(join(folder, "config.json"))?.currentContext;
  if (typeof name !== "string" || name === "" || name === "default")
    return { host: defaultHost, certificates: undefined };
  const id = createHash("sha256").update(name).digest("hex");
  const host = jsonOf(join(folder, "contexts/meta", id, "meta.json"))?.Endpoints?.docker?.Host;
  if (typeof host !== "string")
    throw new Error(`the Docker context '${name}' is not there (docker context ls lists them)`);
  const certificates = join(folder, "contexts/tls", id, "docker");
  return { host, certificates: readable(join(certificates, "ca.pem")) === undefined ? undefined : certificates };
}

// biome-ignore lint/suspicious/noExplicitAny: another program's file, looked into with care
const jsonOf = (path: string): any => {
  const text = readable(path);
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
};

function readable(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** A container engine that can be called. */
export interface Engine {
  readonly docker: Docker;
  /** Where it listens, for sentences. */
  readonly host: string;
}

export function openEngine({ host, certificates }: EngineAddress): Engine {
  // what is not said is read from the environment by the library: everything is said
  if (host.startsWith("unix://")) {
    const socket = { socketPath: host.slice("unix://".length), host: undefined };
    return { host, docker: new Docker(socket as unknown as Docker.DockerOptions) };
  }
  if (!/^tcp:\/\/[^/]+$/.test(host))
    throw new Error(`the container engine's address ${host} is neither unix:// nor tcp://`);
  const { hostname, port } = new URL(host.replace(/^tcp:/, "http:"));
  const isSecret = certificates !== undefined;
  const pem = (name: string) => readable(join(certificates ?? "", `${name}.pem`));
  const docker = new Docker({
    protocol: isSecret ? "https" : "http",
    host: hostname,
    port: Number(port || (isSecret ? 2376 : 2375)),
    ...(isSecret ? { ca: pem("ca"), cert: pem("cert"), key: pem("key") } : {}),
  } as Docker.DockerOptions);
  return { host, docker };
}

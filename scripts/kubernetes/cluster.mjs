// A Kubernetes cluster for tests, which they start, break and stop: a real control plane, and one node with real pods.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeBridge } from "../docker.mjs";
import { makeCertificates } from "./certificates.mjs";
import { Node } from "./node.mjs";
import { builtProgram } from "./program.mjs";

const readyWithinMs = 120_000;
const services = "10.215.0.0/24";
/** Adds the folders of tools that only root has on the PATH. */
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };

/** Starts a cluster of its own. Needs root. */
export async function startCluster({ hasNode = true, settings = {} } = {}) {
  const program = await builtProgram();
  const home = mkdtempSync(join(tmpdir(), "millrace-kubernetes-"));
  const bridge = makeBridge();
  const [etcd, peer, api, controllers, scheduler, kubelet, kubeletHealth] = await freePorts(7);
  const at = { home, program, bridge, kubelet, kubeletHealth, name: "node1" };
  makeCertificates(home, { api, addresses: ["127.0.0.1", bridge.gateway, "10.215.0.1"], node: at.name });
  const pki = join(home, "pki");
  const own = (name) => join(home, `${name}.kubeconfig`);
  const kubeconfigs = (name) =>
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"].map((flag) => `--${flag}=${own(name)}`);
  const local = (port) => ["--bind-address=127.0.0.1", `--secure-port=${port}`];

  /** The parts of the control plane, each with its arguments. */
  const parts = {
    etcd: [
      "etcd",
      `--data-dir=${join(home, "etcd")}`,
      `--listen-client-urls=http://127.0.0.1:${etcd}`,
      `--advertise-client-urls=http://127.0.0.1:${etcd}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-cluster=default=http://127.0.0.1:${peer}`,
      "--unsafe-no-fsync",
      "--log-level=warn",
    ],
    api: [
      "kube-apiserver",
      ...local(api),
      `--etcd-servers=http://127.0.0.1:${etcd}`,
      `--tls-cert-file=${pki}/api.crt`,
      `--tls-private-key-file=${pki}/api.key`,
      `--client-ca-file=${pki}/ca.crt`,
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${pki}/accounts.pub`,
      `--service-account-signing-key-file=${pki}/accounts.key`,
      `--service-cluster-ip-range=${services}`,
      "--endpoint-reconciler-type=none",
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      "--allow-privileged",
      `--kubelet-client-certificate=${pki}/api-client.crt`,
      `--kubelet-client-key=${pki}/api-client.key`,
      `--kubelet-certificate-authority=${pki}/ca.crt`,
      "--kubelet-preferred-address-types=InternalIP",
      ...(settings.api ?? []),
    ],
    controllers: [
      "kube-controller-manager",
      ...kubeconfigs("controllers"),
      ...local(controllers),
      "--leader-elect=false",
      `--service-account-private-key-file=${pki}/accounts.key`,
      `--root-ca-file=${pki}/ca.crt`,
      "--use-service-account-credentials",
      ...(settings.controllers ?? []),
    ],
    scheduler: ["kube-scheduler", ...kubeconfigs("scheduler"), ...local(scheduler), "--leader-elect=false"],
  };
  const running = new Map();

  const start = (part) => {
    const child = spawn(program, parts[part], { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
    const told = { child, log: "", exited: new Promise((done) => child.once("exit", done)) };
    for (const out of [child.stdout, child.stderr])
      out.on("data", (text) => (told.log = `${told.log}${text}`.slice(-20_000)));
    running.set(part, told);
  };
  /** Kills: an API server outlives SIGTERM by a minute while watches are open. */
  const stop = async (part) => {
    const told = running.get(part);
    running.delete(part);
    told?.child.kill("SIGKILL");
    await told?.exited;
  };
  const signal = (part, name) => running.get(part)?.child.kill(name);
  const log = (part) => running.get(part)?.log ?? "";

  const kubeconfig = own("admin");
  const ask = (args, input) =>
    spawnSync(program, ["kubectl", `--kubeconfig=${kubeconfig}`, ...args], {
      encoding: "utf8",
      input,
      env,
      maxBuffer: 2 ** 27,
    });
  /** Runs kubectl as the administrator and returns its output. */
  const kubectl = (...args) => {
    const { status, stdout, stderr } = ask(args);
    if (status !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  /** Applies manifests given as objects. */
  const apply = (...objects) => {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    const { status, stderr } = ask(["apply", "-f", "-"], JSON.stringify(list));
    if (status !== 0) throw new Error(`kubectl apply: ${stderr}`);
  };
  /** Posts an object to a path of the API. */
  const create = (path, object) => {
    const { status, stderr } = ask(["create", "--raw", path, "-f", "-"], JSON.stringify(object));
    if (status !== 0) throw new Error(`kubectl create --raw ${path}: ${stderr}`);
  };
  const hasEnded = (part) => {
    const { exitCode = null, signalCode = null } = running.get(part)?.child ?? {};
    return exitCode !== null || signalCode !== null;
  };
  /** Waits until kubectl succeeds with these arguments. */
  const until = async (part, ...args) => {
    const deadline = Date.now() + readyWithinMs;
    while (ask(args).status !== 0) {
      if (hasEnded(part)) start(part); // an API server gives up if its start takes long on a busy machine
      if (Date.now() > deadline)
        throw new Error(`${part} was not ready: ${ask(args).stderr}\n${log(part) || node.log()}`);
      await sleep(300);
    }
  };
  const untilApiAnswers = () => until("api", "get", "--raw", "/readyz");

  const node = new Node(at);
  const end = async () => {
    process.off("exit", killAll);
    await node.end();
    for (const part of [...running.keys()].reverse()) await stop(part);
    bridge.remove();
    rmSync(home, { recursive: true, force: true });
  };
  const killAll = () => {
    for (const { child } of running.values()) child.kill("SIGKILL");
  };
  process.once("exit", killAll);

  try {
    for (const part of ["etcd", "api"]) start(part);
    await untilApiAnswers();
    for (const part of ["controllers", "scheduler"]) start(part); // they end if the server lacks its own roles yet
    await until("controllers", "--namespace=default", "get", "serviceaccount", "default");
    if (hasNode) {
      await node.start();
      await until("kubelet", "wait", "--for=condition=Ready", `node/${at.name}`, "--timeout=1s");
    }
  } catch (error) {
    await end();
    throw error;
  }
  return {
    kubeconfig,
    home,
    url: `https://127.0.0.1:${api}`,
    gateway: bridge.gateway,
    node,
    kubectl,
    apply,
    create,
    until: (...args) => until("kubectl", ...args),
    start,
    stop,
    signal,
    log,
    untilApiAnswers,
    makeImage: (name, made) => node.makeImage(name, made),
    saveImage: (name, file) => node.saveImage(name, file),
    end,
  };
}

/** Ports of this machine that nobody listens on. */
async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise((done) => server.listen(0, "127.0.0.1", done));
      return server;
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

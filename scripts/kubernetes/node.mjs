// The node of a cluster for tests: a kubelet over containerd, with images made from files of this machine.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeRoot } from "../docker.mjs";

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
const readyWithinMs = 60_000;
const pause = "millrace.test/pause:1";
/** Each kubelet has a branch of its own: it ends every process in its branch that it does not know. */
const controlGroups = "/sys/fs/cgroup";

export class Node {
  #at;
  #home;
  #socket;
  #branch;
  #running = new Map();

  constructor(at) {
    this.#at = at;
    this.#home = join(at.home, "node");
    this.#socket = join(at.home, "containerd.sock");
    this.#branch = `millrace-test-${at.kubelet}`;
  }

  /** What its programs last said. */
  log = () => [...this.#running.values()].map(({ log }) => log).join("\n");

  async start() {
    this.#prepare();
    await this.startEngine();
    if (!this.#ctr("images", "ls", "-q").includes(pause))
      this.makeImage(pause, { programs: ["/bin/busybox"], changes: ['CMD ["/bin/busybox","sleep","2147483647"]'] });
    this.startKubelet();
  }

  /** Containers and the kubelet see what the other mounts, and this machine sees neither. */
  async startEngine() {
    const script = `mount --make-rshared / && exec containerd --config ${join(this.#at.home, "containerd.toml")}`;
    this.#spawn("engine", "unshare", ["--mount", "--propagation", "slave", "sh", "-c", script]);
    const deadline = Date.now() + readyWithinMs;
    while (this.#tryCtr("version").status !== 0) {
      if (Date.now() > deadline) throw new Error(`containerd was not ready:\n${this.log()}`);
      await sleep(50);
    }
  }

  startKubelet() {
    const { program, home, name, bridge } = this.#at;
    const space = `--mount=/proc/${this.#running.get("engine").child.pid}/ns/mnt`;
    this.#spawn("kubelet", "nsenter", [
      space,
      program,
      "kubelet",
      `--kubeconfig=${join(home, "kubelet.kubeconfig")}`,
      `--config=${join(home, "kubelet.json")}`,
      `--root-dir=${join(this.#home, "kubelet")}`,
      `--hostname-override=${name}`,
      `--node-ip=${bridge.gateway}`,
    ]);
  }

  /** Pods live on. */
  async stopKubelet(signal = "SIGKILL") {
    await this.#stop("kubelet", signal);
  }

  /** Makes an image of programs of this machine with what they load, of more files (path in the image: path here), and of changes. */
  makeImage(name, { programs = [], libraries = [], files = {}, changes = [] }) {
    const folder = join(this.#home, "image");
    const tar = (from, to, ...names) =>
      check(spawnSync("tar", ["-C", from, "--owner=0", "--group=0", "-cf", to, ...names]));
    makeRoot(join(folder, "root"), programs, libraries, files);
    tar(join(folder, "root"), join(folder, "layer.tar"), ".");
    const digest = createHash("sha256")
      .update(readFileSync(join(folder, "layer.tar")))
      .digest("hex");
    const config = {
      architecture: process.arch === "arm64" ? "arm64" : "amd64",
      os: "linux",
      config: configOf(changes),
      rootfs: { type: "layers", diff_ids: [`sha256:${digest}`] },
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    const manifest = [{ Config: "config.json", RepoTags: [name], Layers: ["layer.tar"] }];
    writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
    tar(folder, join(folder, "image.tar"), "manifest.json", "config.json", "layer.tar");
    this.#ctr("images", "import", join(folder, "image.tar"));
    rmSync(folder, { recursive: true, force: true });
    return name;
  }

  /** Writes an image into a file, as `docker save` does. */
  saveImage = (name, file) => void this.#ctr("images", "export", file, name);

  async end() {
    if (!existsSync(this.#home)) return;
    await this.stopKubelet();
    if (this.#running.has("engine")) await this.#endContainers();
    await this.#stop("engine", "SIGTERM");
    for (const root of this.#branches()) removeTree(root);
  }

  #prepare() {
    const { home, bridge, kubelet, kubeletHealth } = this.#at;
    const pki = join(home, "pki");
    for (const each of ["kubelet", "pods", "containerd", "plugins", "networks"])
      mkdirSync(join(this.#home, each), { recursive: true });
    for (const root of this.#branches()) mkdirSync(root, { recursive: true });
    const range = [{ subnet: bridge.network, rangeStart: bridge.first }];
    const network = {
      cniVersion: "1.0.0",
      name: "millrace-test",
      plugins: [
        {
          type: "bridge",
          bridge: bridge.name,
          isGateway: false,
          ipMasq: false,
          ipam: {
            type: "host-local",
            dataDir: join(this.#home, "addresses"),
            ranges: [range],
            routes: [{ dst: "0.0.0.0/0", gw: bridge.gateway }],
          },
        },
      ],
    };
    writeFileSync(join(this.#home, "networks/10-bridge.conflist"), JSON.stringify(network));
    writeFileSync(
      join(home, "containerd.toml"),
      `version = 2
root = "${this.#home}/containerd"
state = "${this.#home}/containerd-state"
[grpc]
  address = "${this.#socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pause}"
  disable_apparmor = true
  # root in a container may not have the right to lower a score
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${this.#home}/networks"
`,
    );
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      address: bridge.gateway,
      port: kubelet,
      readOnlyPort: 0,
      healthzPort: kubeletHealth,
      tlsCertFile: join(pki, "node.crt"),
      tlsPrivateKeyFile: join(pki, "node.key"),
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: join(pki, "ca.crt") },
      },
      authorization: { mode: "Webhook" },
      containerRuntimeEndpoint: `unix://${this.#socket}`,
      podLogsDir: join(this.#home, "pods"),
      volumePluginDir: join(this.#home, "plugins"),
      cgroupDriver: "cgroupfs",
      cgroupRoot: `/${this.#branch}`,
      failCgroupV1: false,
      failSwapOn: false,
      makeIPTablesUtilChains: false,
      resolvConf: "/etc/resolv.conf",
      imageGCHighThresholdPercent: 100,
      evictionHard: {
        "memory.available": "100Mi",
        "nodefs.available": "1%",
        "imagefs.available": "1%",
        "nodefs.inodesFree": "1%",
      },
      nodeStatusUpdateFrequency: "5s",
      maxPods: 60,
    };
    writeFileSync(join(home, "kubelet.json"), JSON.stringify(config));
  }

  #branches() {
    const isUnified = existsSync(join(controlGroups, "cgroup.controllers"));
    const roots = isUnified ? [""] : readdirSync(controlGroups).filter((name) => name !== "unified");
    return roots.map((root) => join(controlGroups, root, this.#branch));
  }

  #spawn(part, command, args) {
    const child = spawn(command, args, { cwd: this.#home, env, stdio: ["ignore", "pipe", "pipe"] });
    const told = { child, log: "", exited: new Promise((done) => child.once("exit", done)) };
    for (const out of [child.stdout, child.stderr])
      out.on("data", (text) => (told.log = `${told.log}${text}`.slice(-20_000)));
    this.#running.set(part, told);
    const kill = () => child.kill("SIGKILL");
    process.once("exit", kill);
    void told.exited.then(() => process.off("exit", kill));
  }

  async #stop(part, signal) {
    const told = this.#running.get(part);
    this.#running.delete(part);
    told?.child.kill(signal);
    await told?.exited;
  }

  /** What runs outlives the engine. */
  async #endContainers() {
    const list = (...args) => (this.#tryCtr(...args).stdout ?? "").split("\n").filter(Boolean);
    for (const id of list("tasks", "ls", "-q")) this.#tryCtr("tasks", "kill", "-s", "KILL", id);
    const deadline = Date.now() + 10_000;
    while (list("tasks", "ls").some((line) => line.includes("RUNNING")) && Date.now() < deadline) await sleep(100);
    for (const id of list("containers", "ls", "-q")) {
      this.#tryCtr("tasks", "rm", "-f", id);
      this.#tryCtr("containers", "rm", id);
    }
  }

  #tryCtr(...args) {
    const given = ["--address", this.#socket, "--namespace", "k8s.io", ...args];
    return spawnSync("ctr", given, { encoding: "utf8", env, timeout: 60_000 });
  }

  #ctr = (...args) => check(this.#tryCtr(...args)).stdout;
}

/** An image's configuration, from changes as a Dockerfile has them. */
function configOf(changes) {
  const config = { Env: ["PATH=/usr/local/bin:/usr/bin:/bin"] };
  for (const change of changes) {
    const [, what, value] = /^(\S+) (.*)$/.exec(change);
    if (what === "ENV") config.Env.push(value);
    else if (what === "CMD") config.Cmd = JSON.parse(value);
    else if (what === "ENTRYPOINT") config.Entrypoint = JSON.parse(value);
    else if (what === "WORKDIR") config.WorkingDir = value;
    else throw new Error(`an image cannot be changed by ${what}`);
  }
  return config;
}

function check(result) {
  if (result.status !== 0) throw new Error(String(result.stderr) || String(result.error));
  return result;
}

/** Removes a branch of control groups, whose folders can only be removed when they have no folder. */
function removeTree(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  try {
    rmdirSync(folder);
  } catch {
    // a process is still ending
  }
}

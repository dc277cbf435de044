// The gear of each test file, and its needs from the machine. A file has the needs of all modules that it
// imports, so `npm test -- one-file` installs no more than that file uses.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, matchesGlob, relative } from "node:path";
import { root } from "../set-up.mjs";

const python = [
  { probe: ["python3", "--version"], debian: "python3" },
  { probe: ["python3", "-c", "import venv, ensurepip"], debian: "python3-venv" },
];

/**
 * The needs of tests besides Node.js: each is a command that succeeds if it is installed, and the Debian packages that
 * provide it.
 */
export const needs = {
  python,
  /** Clients in environments of their own. */
  newerPython: python,
  machinePython: python,
  postgres: [{ probe: ["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"], debian: "postgresql" }],
  compiler: [
    {
      probe: ["sh", "-c", "echo 'int main(void){return 0;}' | gcc -shared -fPIC -x c - -o /dev/null"],
      debian: "gcc libc6-dev",
    },
  ],
  // these are in folders that only root has on the PATH
  caddy: [{ probe: ["/usr/bin/caddy", "version"], debian: "caddy" }],
  /** Shells whose completion is tried. */
  shells: [
    { probe: ["zsh", "--version"], debian: "zsh" },
    { probe: ["fish", "--version"], debian: "fish" },
  ],
  jq: [
    { probe: ["jq", "--version"], debian: "jq" },
    { probe: ["curl", "--version"], debian: "curl" },
  ],
  /** For certificates of tests, and to read units. */
  openssl: [{ probe: ["openssl", "version"], debian: "openssl" }],
  systemd: [{ probe: ["systemd-analyze", "--version"], debian: "systemd" }],
  nginx: [{ probe: ["sh", "-c", "PATH=$PATH:/usr/sbin nginx -v"], debian: "nginx" }],
  compose: [{ probe: ["/usr/bin/docker-compose", "version"], debian: "docker-compose" }],
  promtool: [{ probe: ["promtool", "--version"], debian: "prometheus" }],
  go: [{ probe: ["sh", "-c", "PATH=$PATH:/usr/local/go/bin go version"], debian: "golang-go" }],
  btrfs: [{ probe: ["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs --version"], debian: "btrfs-progs" }],
  faketime: [{ probe: ["faketime", "--version"], debian: "faketime" }],
  browser: [{ probe: ["/usr/bin/chromium", "--version"], debian: "chromium" }],
  /** Public clients from npm that only tests run; `scripts/tests/clients.mjs` installs them. */
  clients: [],
  /** What the node of a cluster runs on; Kubernetes itself is built by `scripts/kubernetes/build.mjs`. */
  kubernetes: [
    {
      probe: ["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; containerd --version && runc --version && iptables --version"],
      debian: "containerd runc iptables",
    },
    { probe: ["/usr/lib/cni/bridge", "--version"], debian: "containernetworking-plugins" },
    { probe: ["/bin/busybox", "true"], debian: "busybox-static" },
    { probe: ["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin ip -V"], debian: "iproute2" },
    { probe: ["openssl", "version"], debian: "openssl" },
    ...python,
  ],
  // Uses the package's own command line: one from elsewhere may not fit its engine.
  docker: [
    { probe: ["sh", "-c", "/usr/bin/docker --version && PATH=$PATH:/usr/sbin dockerd --version"], debian: "docker.io" },
    { probe: ["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin ip -V"], debian: "iproute2" },
  ],
};

/** What the modules that tests import need. */
const needOf = {
  "scripts/postgres.mjs": "postgres",
  "scripts/docker.mjs": "docker",
  "scripts/kubernetes/cluster.mjs": "kubernetes",
  "tests/compat/stock.ts": "python",
  "tests/compat/environments/newer-python.ts": "newerPython",
  "tests/compat/environments/machine-python.ts": "machinePython",
  "tests/compat/npm-clients.ts": "clients",
  "tests/faults/scene.ts": "python",
  "tests/docker/python.test.ts": "python",
  "tests/cli/dev-python.test.ts": "python",
  "tests/cli/shells.test.ts": "shells",
  "tests/examples/examples.test.ts": "python",
  "tests/examples/containers.test.ts": "python",
  "tests/compat/python-worker.test.ts": "python",
  "tests/deploy/nginx.ts": "nginx",
  "tests/deploy/files.test.ts": "compose",
  "tests/deploy/observability.test.ts": "promtool",
  "tests/deploy/options.test.ts": ["compose", "docker", "jq", "systemd"],
  "tests/deploy/proxies.test.ts": ["caddy", "nginx", "openssl", "systemd"],
  "tests/docs/guide/run-page.ts": "jq",
  "tests/pages/browser.ts": "browser",
  "tests/pages/dashboard/visit.ts": "browser",
  "tests/docs/receivers.ts": "go",
  "tests/docs/webhooks.test.ts": "python",
  "packages/server/src/host/quotas/btrfs.test.ts": "btrfs",
  "tests/servers/starting.test.ts": "faketime",
  "tests/faults/machine/wall-clock.ts": "faketime",
  "tests/faults/shim/disk-shim.ts": "compiler",
};

/** What judges how soon a server answers while others crowd it. Each test stands on its own, unless it is named "after all". */
export const crowds = [
  "tests/faults/balanced-crowds.test.ts",
  "tests/faults/due-at-start.test.ts",
  "tests/faults/hostile-callers.test.ts",
  "tests/faults/hostile-load.test.ts",
  "tests/faults/hostile-words.test.ts",
  "tests/faults/many-readers.test.ts",
  "tests/faults/one-caller.test.ts",
  "tests/faults/openai-readers.test.ts",
];

/** Servers of one database that are lost, cut off, suspended, or come too late: most of these wait until it is noticed. */
const losses = [
  "tests/faults/faults-postgres.test.ts",
  "tests/faults/server-loss.test.ts",
  "tests/faults/wall-clock.test.ts",
  "tests/servers/database.test.ts",
  "tests/servers/owners.test.ts",
  "tests/servers/pods.test.ts",
  "tests/servers/silence.test.ts",
  "tests/servers/starting.test.ts",
];

/**
 * Tests that take long, or need a machine to themselves: containers, browsers, environments of packages, fuzzing, floods,
 * lost servers, power cuts, deployment, what pages tell, older databases.
 */
const machine = [
  ...crowds,
  ...losses,
  "tests/cli/dev-python.test.ts",
  "tests/cli/examples.test.ts",
  "tests/compat/queue-clients.test.ts",
  "tests/deploy/**",
  "tests/docker/**",
  "tests/docs/guide/guide.test.ts",
  "tests/docs/guide/postgres.test.ts",
  "tests/docs/guide/readme.test.ts",
  "tests/docs/guide/start.test.ts",
  "tests/docs/webhooks.test.ts",
  "tests/examples/containers.test.ts",
  "tests/gpu/inventory.test.ts",
  "tests/migrate/**",
  "packages/server/src/stores/postgres/contract-debian.test.ts",
  "tests/faults/disk.test.ts",
  "tests/faults/hostile-json.test.ts",
  "tests/faults/hostile-wire.test.ts",
  "tests/faults/power-loss.test.ts",
  "tests/fuzz/**",
  "tests/kubernetes/**",
  "tests/pages/**",
  "packages/server/src/providers/docker/**",
  "packages/server/src/providers/kubernetes/kubernetes-provider.test.ts",
  "packages/server/src/providers/kubernetes/pod-starts.test.ts",
  "packages/server/src/host/quotas/btrfs.test.ts",
];

/** Tests that start servers or other processes: not for the fast gear, even if they need only Node.js. */
const started = ["tests/**", "packages/server/src/providers/**", "packages/worker/**"];

/** The fast gear needs only Node.js; `test` adds everything that is not in `machine`. */
export const gears = ["fast", "test", "machine"];

/** The repository's test files, as paths from its root. */
export function testFiles() {
  const under = (folder) =>
    readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  const packages = readdirSync(join(root, "packages")).map((name) => join("packages", name, "src"));
  return [...packages, "tests"].filter((folder) => existsSync(join(root, folder))).flatMap(under);
}

/** The gear that a file belongs to. */
export function gearOf(file) {
  if (machine.some((glob) => matchesGlob(file, glob))) return "machine";
  return needsOf(file).size > 0 || started.some((glob) => matchesGlob(file, glob)) ? "test" : "fast";
}

/** The files that a gear runs: `test` runs the fast ones too. */
export const filesOf = (gear, files = testFiles()) =>
  files.filter((file) => gearOf(file) === gear || (gear === "test" && gearOf(file) === "fast"));

const reached = new Map();

/** The names of what a file needs, by the modules that it imports. */
export function needsOf(file) {
  const known = reached.get(file);
  if (known) return known;
  const found = new Set([needOf[file] ?? []].flat());
  reached.set(file, found); // set before its imports, which may be circular
  for (const other of importsOf(file)) for (const need of needsOf(other)) found.add(need);
  return found;
}

/** The repository's own modules that a file imports for their values, not only for types. */
function importsOf(file) {
  const source = readFileSync(join(root, file), "utf8");
  const named = [...source.matchAll(/^\s*(?:import|export)\s+(?!type\b)[^;"']*?from\s*["'](\.[^"']+)["']/gm)];
  const dynamic = [...source.matchAll(/\bimport\(\s*["'](\.[^"']+)["']/g)];
  return [...named, ...dynamic]
    .map(([, path]) => relative(root, join(root, dirname(file), path)))
    .map((path) => [path, path.replace(/\.js$/, ".ts")].find((each) => existsSync(join(root, each))))
    .filter((path) => path !== undefined);
}

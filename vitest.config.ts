import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { speaksToClients } from "./scripts/tests/clients.mjs";
import { crowds, filesOf, needsOf, testFiles } from "./scripts/tests/gears.mjs";

/** Crowds, and browsers, which take both cores: nothing else runs beside them. */
const alone = ["tests/pages/dashboard/*.test.ts", "tests/pages/guide.test.ts", ...crowds];

/** What looks at timers or caches of its process is the first to use them. */
const firstOfAll = [
  "packages/server/src/clock.test.ts",
  "packages/server/src/edges/shared/bodies/body-account.test.ts",
];

/** What starts no process of its own. */
const inProcess = filesOf("fast").filter((file) => !firstOfAll.includes(file));

/** What speaks to stock clients, whose installation may still be under way. */
const withClients = testFiles().filter((file) => speaksToClients(needsOf(file)));
const clientsInstalled = ["scripts/tests/clients-installed.mjs"];

/** What takes longest begins first: else all would wait for it in the end. */
const longest = [
  "tests/cli/dev.test.ts",
  "tests/faults/faults.test.ts",
  "tests/faults/faults-postgres.test.ts",
  "tests/servers/silence.test.ts",
  "tests/gpu/inventory.test.ts",
  "tests/servers/starting.test.ts",
  "tests/faults/server-loss.test.ts",
  "tests/lb/life.test.ts",
  "tests/servers/owners.test.ts",
  "tests/compat/openai-js.test.ts",
  "tests/servers/answers.test.ts",
  "tests/migrate/migrate.test.ts",
  "tests/e2e/workers/worker-lives.test.ts",
  "tests/compat/python-client.test.ts",
  "tests/faults/wall-clock.test.ts",
  "tests/e2e/volumes.test.ts",
  "tests/compat/js-client.test.ts",
  "tests/simulation/simulation.test.ts",
  "packages/server/src/stores/history.test.ts",
  "packages/server/src/stores/postgres/connection/broken-connections.test.ts",
  "packages/server/src/stores/sqlite/contract-file.test.ts", // waits for the disk, for half a minute on some
  "packages/server/src/stores/sqlite/writing/piece-writes.test.ts",
  "packages/server/src/loops/month.test.ts",
  "packages/server/src/stores/postgres/contract-newest.test.ts",
  "packages/server/src/stores/postgres/contract-debian.test.ts",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const file = relative(import.meta.dirname, moduleId);
      const place = longest.indexOf(file);
      if (place >= 0) return place + (withClients.includes(file) ? longest.length : 0);
      // their program may still be built, which takes minutes the first time
      if (needsOf(file).has("kubernetes")) return 2 * longest.length + 2;
      return 2 * longest.length + (project.name === "in process" ? 1 : 0);
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** A few long-lived processes run the files one after another: starting a process took most of a short file's time. */
const shared = { isolate: false, restoreMocks: true, unstubEnvs: true }; // so that no file sees the spies of another

const beside = { maxWorkers: 5, sequence: { groupOrder: 0 } }; // on two cores: most of them wait most of their time

export default defineConfig({
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } }, // on a busy machine much takes long
    pool: "forks",
    globalSetup: "scripts/tests/homes.mjs",
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "packages",
          include: ["packages/*/src/**/*.test.ts"],
          exclude: ["**/node_modules/**", ...firstOfAll, ...inProcess],
          ...shared,
          ...beside,
        },
      },
      { extends: true, test: { name: "own process", include: firstOfAll, ...beside } },
      { extends: true, test: { name: "in process", include: inProcess, ...shared, ...beside } },
      {
        extends: true,
        test: {
          name: "programs",
          include: ["tests/**/*.test.ts"],
          exclude: [...alone, ...inProcess, ...withClients],
          ...shared,
          ...beside,
        },
      },
      {
        extends: true,
        test: {
          name: "programs and clients",
          include: withClients,
          exclude: alone,
          setupFiles: clientsInstalled,
          ...shared,
          ...beside,
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: alone,
          setupFiles: clientsInstalled,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});

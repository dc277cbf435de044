import { defineConfig } from "vitest/config";

/** What judges how soon a server answers, or how much it asks of its database: nothing else runs beside it. */
const alone = [
  "tests/faults/hostile-load.test.ts",
  "tests/faults/many-readers.test.ts",
  "tests/faults/one-caller.test.ts",
  "tests/faults/hostile-words.test.ts",
  "tests/servers/answers.test.ts",
];

export default defineConfig({
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    projects: [
      {
        extends: true,
        test: {
          name: "most",
          include: ["packages/*/src/**/*.test.ts", "tests/**/*.test.ts"],
          exclude: ["**/node_modules/**", ...alone],
          maxWorkers: 4, // on two cores: most of them wait most of their time
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: "alone", include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});

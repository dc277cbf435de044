// What a person waits for: the dashboard's first page in a browser that has nothing of it yet.
import { chromium } from "playwright-core";
import { entry } from "../entries.mjs";
import { key } from "../millrace.mjs";
import { makeFolder } from "../processes.mjs";
import { median } from "../rounds.mjs";
import { submissions } from "./run.mjs";

const load = { must: 1, aim: 0.7 };
const script = { must: 200, aim: 150 };

export const row = {
  name: "dashboard",
  words: "the first page of the dashboard in a fresh browser",
  async measure({ services, databases, rounds, onRound, scope }) {
    const [database] = databases;
    const server = await services.startMillrace(scope, database);
    await submissions(server, makeFolder(scope)); // an endpoint to show
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
    scope.defer(() => browser.close());
    const loads = [];
    for (let round = 0; round <= rounds; round++) {
      onRound(`round ${round} of ${rounds}`);
      loads.push(await firstLoad(browser, server.url));
    }
    const [, ...counted] = loads; // the first warms the server up
    const seconds = counted.map(({ ms }) => ms / 1_000);
    const kilobytes = counted.map(({ scriptBytes }) => scriptBytes / 1_000);
    return [
      entry({
        database,
        what: "the overview of a fresh browser, from the address to its content",
        unit: "s",
        ours: seconds,
        figure: { value: median(seconds), unit: "s" },
        most: load,
      }),
      entry({
        database,
        what: "script that it transfers, compressed",
        unit: "kB",
        ours: kilobytes,
        figure: { value: median(kilobytes), unit: "kB" },
        most: script,
      }),
    ];
  },
};

/** Opens the overview without a cache, signed in. */
async function firstLoad(browser, url) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.addInitScript(
      `if (location.origin !== "null") sessionStorage.setItem("millrace.key", ${JSON.stringify(key)});`,
    );
    const began = performance.now();
    await page.goto(url);
    await page.getByRole("row").nth(1).waitFor();
    const ms = performance.now() - began;
    const scriptBytes = await page.evaluate(
      `performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js"))
        .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
    );
    return { ms, scriptBytes };
  } finally {
    await context.close();
  }
}

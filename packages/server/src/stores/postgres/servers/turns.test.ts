import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { limits } from "../../../limits/index.js";
import { plainTemplate } from "../../../testing/facts-fixture.js";
import { Connections } from "../connection/connections.js";
import { postgresTallyReader } from "../tallies.js";
import { both, on, openTwoServers, scene, times, url } from "./two-servers-fixture.js";

openTwoServers();

/** A connection of the test's own. */
async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

describe("Grants of shared rate limits", () => {
  it("are given to many names in one commit, and never beyond a name's limit", async () => {
    const watching = await connected();
    const asked = times(600).flatMap((n) => [0, 1].map((server) => ({ name: `name ${n}`, server })));
    const granted = await Promise.all(
      asked.map(({ name, server }) => on(server).shared!.grant({ name, limit: 10, count: 8, now: scene.now })),
    );
    for (const n of times(600)) expect((granted[2 * n] as number) + (granted[2 * n + 1] as number)).toBe(10);
    const { rows } = await watching.query("SELECT count(DISTINCT xmin::text) AS commits FROM rate_grant");
    expect(Number(rows[0].commits)).toBeLessThan(50);
  });
});

describe("However much is written or read,", () => {
  it("a change of a resource does not wait for the records of thousands of scaling decisions", async () => {
    let recorded = 0;
    const records = times(2_000).map((n) => {
      const decision = { at: scene.now, inputs: "{}", outcome: `start ${n}`, reason: "it waits" };
      return on(0)
        .decisions.record({ endpointNo: scene.endpointNo, decision })
        .then(() => recorded++);
    });
    await on(0).templates.create({ id: "template000009", ownerNo: 1, settings: plainTemplate });
    expect(recorded).toBeLessThan(200);
    await Promise.all(records);
  });

  it("resources are read, changes made and the database pinged while the queue cannot be read", async () => {
    const locking = await connected();
    await locking.query("BEGIN");
    await locking.query("LOCK TABLE job IN ACCESS EXCLUSIVE MODE");
    const reading = times(4 * limits.readersMax).map(() => both[0].reader.nextExpiry());
    await both[0].ping();
    expect(await both[0].templates.all()).toEqual([]);
    expect(await both[0].shared!.exclusively(async () => "changed")).toBe("changed");
    await locking.query("ROLLBACK");
    await Promise.all(reading);
  });
});

it("Counts that many ask for at once are read in a few queries", async () => {
  const id = await scene.submit();
  expect(id).toBeDefined();
  const connections = new Connections(url, 1);
  onTestFinished(() => connections.close());
  let queries = 0;
  const { tally } = postgresTallyReader({
    read: <Row>(text: string, values: readonly unknown[]) => {
      queries++;
      return connections.read<Row>(text, values);
    },
  } as Connections);
  const nos = times(500).map((n) => (n % 2 ? scene.endpointNo : 1_000_000 + n));
  const counts = await Promise.all(nos.map((no) => tally(no)));
  expect(counts.map(({ waiting }) => waiting)).toEqual(times(500).map((n) => n % 2));
  expect(queries).toBeLessThan(5);
});

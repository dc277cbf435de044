import { afterAll, beforeAll } from "vitest";
import {
  debianBinaries,
  packagedBinaries,
  startPostgres,
  type TestPostgres,
} from "../../../../../scripts/postgres.mjs";
import { storeContract } from "../contract.js";
import { makeDatabase, openEmptied } from "../contracts/postgres-fixture.js";

for (const [from, binaries] of [
  ["Debian's", debianBinaries()],
  ["a package's newest", packagedBinaries()],
] as const) {
  let server: TestPostgres;
  let url: string;
  // the suite asks what is kept in order, not what survives a crash
  beforeAll(async () => {
    server = await startPostgres({ binaries, settings: { fsync: "off" } });
    url = await makeDatabase(server, "contract");
  });
  afterAll(() => server.end());
  storeContract(`PostgreSQL (${from}) keeps the stores' contract`, () => openEmptied(url));
}

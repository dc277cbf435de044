import { packagedBinaries } from "../../../../../scripts/postgres.mjs";
import { postgresContract } from "../contracts/postgres-fixture.js";

postgresContract("PostgreSQL (a package's newest) keeps the stores' contract", packagedBinaries());

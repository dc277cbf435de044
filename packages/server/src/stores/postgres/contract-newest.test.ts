import { packagedBinaries } from "../../../../../scripts/postgres.mjs";
import { postgresContract } from "../contracts/postgres-fixture.js";

postgresContract("PostgreSQL (the newest packaged one) keeps the stores' contract", packagedBinaries());

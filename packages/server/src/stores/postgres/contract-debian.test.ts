import { debianBinaries } from "../../../../../scripts/postgres.mjs";
import { postgresContract } from "../contracts/postgres-fixture.js";

postgresContract("PostgreSQL (Debian's) keeps the stores' contract", debianBinaries());

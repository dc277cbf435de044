import { fileContract } from "../contracts/sqlite-fixture.js";

fileContract("SQLite in a file keeps the stores' contract");

import { storeContract } from "../contract.js";
import { openMemory } from "../contracts/sqlite-fixture.js";

storeContract("SQLite in memory keeps the stores' contract", openMemory, { isKept: false });

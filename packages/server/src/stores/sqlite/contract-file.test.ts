import { storeContract } from "../contract.js";
import { openFile } from "../contracts/sqlite-fixture.js";

storeContract("SQLite in a file keeps the stores' contract", openFile);

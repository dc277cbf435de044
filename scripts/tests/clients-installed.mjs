// Runs before each test file that speaks to a stock client: `npm test` may still be installing them.
import { clientsInstalled } from "./clients.mjs";

await clientsInstalled();

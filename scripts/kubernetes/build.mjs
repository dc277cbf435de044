// Builds the programs of the tests that need a cluster.
import { main } from "../set-up.mjs";
import { helm } from "./helm.mjs";
import { program } from "./program.mjs";

await main(async () => {
  for (const each of [program, helm]) await each.build();
  return 0;
});

// `npm run build`: installs the packages and builds, as `npm start` does first. It is enough for the command line.
import { build, installPackages, main } from "./set-up.mjs";

await main(async () => {
  await installPackages();
  await build();
  return 0;
});

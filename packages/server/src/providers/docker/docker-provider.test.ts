import { afterAll, beforeAll } from "vitest";
import { startDocker, type TestDocker } from "../../../../../scripts/docker.mjs";
import type { ContainerLaunch } from "../../provider.js";
import { type OpenedProvider, providerContract, type Wish } from "../contract.js";
import { dockerProvider } from "./docker-provider.js";
import { openEngine } from "./engine.js";

const image = "millrace-test/node:1";
let engine: TestDocker;
beforeAll(async () => {
  engine = await startDocker();
  engine.makeImage(image, { programs: [process.execPath, "/bin/sh"] });
});
afterAll(() => engine.end());

const launchOf = ({ workerId, command, env, directory }: Wish): ContainerLaunch => ({
  workerId,
  image,
  entrypoint: [],
  command,
  env,
  mounts: [{ source: directory, target: directory }],
});

async function open(): Promise<OpenedProvider> {
  const make = () => dockerProvider(openEngine({ host: engine.host, certificates: undefined }));
  let provider = make();
  return {
    provider,
    launch: launchOf,
    unstartable: [
      [
        /'no\/such:1' is not on this machine and could not be pulled: /,
        (wish) => ({ ...launchOf(wish), image: "no/such:1" }),
      ],
      [/names no command: set dockerStartCmd/, (wish) => ({ ...launchOf(wish), command: [] })],
    ],
    again: async () => (provider = make()),
    end: async () => {
      await provider.leave(0);
      const left = engine.docker("ps", "-aq").split("\n").filter(Boolean);
      if (left.length > 0) engine.docker("rm", "-f", ...left);
    },
  };
}

providerContract("Containers keep the provider's contract", open);

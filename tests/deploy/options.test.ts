import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, writtenPages } from "../docs/guide/blocks.js";
import { makeFolder } from "../e2e/handlers.js";

/** How a program that a page runs tells its options, by the program's first words. */
const helps: Readonly<Record<string, readonly (readonly string[])[]>> = {
  curl: [["curl", "--help", "all"]],
  "docker compose": [
    ["/usr/bin/docker-compose", "--help"],
    ["/usr/bin/docker-compose", "up", "--help"],
  ],
  "docker run": [["/usr/bin/docker", "run", "--help"]],
  install: [["install", "--help"]],
  systemctl: [["systemctl", "--help"]],
  tee: [["tee", "--help"]],
  usermod: [["/usr/sbin/usermod", "--help"]],
};

/** Programs whose options are not looked up, and why. */
const left: Readonly<Record<string, string>> = {
  "apt-get": "it is tried itself, below",
  cat: "it has no option here",
  cd: "it is the shell's",
  echo: "it is the shell's",
  npx: "other tests run `millrace doctor`",
  "nvidia-ctk": "it comes with NVIDIA's toolkit",
  reboot: "it has no option here",
  "ubuntu-drivers": "only Ubuntu has it",
};

/** The single commands of the guide's blocks that no test runs, without `sudo` and variables before them. */
const commands = writtenPages.flatMap((page) =>
  blocksOf(page)
    .filter(({ words }) => words.hardware !== undefined)
    .flatMap(({ text }) =>
      text
        .replaceAll(/'[^']*'|"[^"]*"/g, (quoted) => quoted.replaceAll(/\s/g, "_"))
        .replaceAll(/\s#.*$/gm, "")
        .split(/\n|&&|\|/)
        .map((command) =>
          command
            .trim()
            .replace(/^sudo (-u \w+ )?/, "")
            .replace(/^\w+=\S+ /, ""),
        )
        .filter((command) => command !== ""),
    ),
);

const programOf = (command: string) => {
  const [first = "", second] = command.split(" ");
  return first === "docker" ? `${first} ${second}` : first;
};

/** The options among words: `-fsSL` are four. Those of a program that a container runs are not the engine's. */
function optionsOf(command: string): string[] {
  const own = command.replace(/(debian:\S+) .*/, "$1").replaceAll(/>\S+/g, "");
  return own
    .split(/\s+/)
    .filter((word) => /^-/.test(word))
    .flatMap((word) =>
      word.startsWith("--") ? [word.replace(/=.*/, "")] : [...word.slice(1)].map((one) => `-${one}`),
    );
}

describe("A command of the guide that no test runs", () => {
  it("is of a program that is looked up here, or for a reason is not", () => {
    const programs = new Set(commands.map(programOf));
    expect([...programs].sort()).toEqual([...Object.keys(helps), ...Object.keys(left)].sort());
  });

  it.each(commands.filter((command) => programOf(command) in helps))(
    "has options that its program knows: %s",
    (command) => {
      const program = programOf(command);
      const help = (helps[program] ?? []).map(
        ([file = "", ...words]) => spawnSync(file, words, { encoding: "utf8" }).stdout,
      );
      for (const option of optionsOf(command)) {
        const isKnown = new RegExp(`(^|[\\s,[])${option}(?![\\w-])`, "m");
        expect(help.join("\n"), `${program} ${option}`).toMatch(isKnown);
      }
      if (program === "systemctl") expect(help.join("\n")).toContain(` ${command.split(" ")[1]} `);
    },
  );

  it.each(commands.filter((command) => programOf(command) === "apt-get"))(
    "is one that apt-get takes: %s",
    (command) => {
      const words = command.split(" ").slice(1);
      expect(spawnSync("apt-get", [...words, "--help"], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
    },
  );
});

// prints the addresses that it would read, and reads none
it("apt reads the source of packages that the guide adds", (test) => {
  const [block] = blocksOf("gpus").filter(({ text }) => text.includes("sources.list.d"));
  const list = join(makeFolder(test), "nvidia.list");
  writeFileSync(list, `${/'(deb .*)'/.exec(block?.text ?? "")?.[1]}\n`);
  const words = ["-o", `Dir::Etc::sourcelist=${list}`, "-o", "Dir::Etc::sourceparts=-", "update", "--print-uris"];
  const { stdout, stderr } = spawnSync("apt-get", words, { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^'https:\/\/nvidia\.github\.io\/libnvidia-container\/stable\/deb\/\w+\/InRelease'/m);
});

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { until } from "../harness.js";
import { millrace, startMillrace } from "./millrace.js";

let folder: string;
beforeEach((test) => {
  folder = join(mkdtempSync(join(tmpdir(), "millrace-python-")), "shout");
  mkdirSync(folder);
  test.onTestFinished(() => rmSync(join(folder, ".."), { recursive: true, force: true }));
});

const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
const handler = (body: string) => `import runpod
import six

def handler(job):
    return ${body}

runpod.serverless.start({"handler": handler})
`;
/** What pip and uv need to reach the packages from here. */
const reach: Record<string, string> = Object.fromEntries(
  Object.entries({ ...process.env, SSL_CERT_FILE: process.env.SSL_CERT_FILE ?? process.env.PIP_CERT }).filter(
    (entry): entry is [string, string] =>
      /^(HOME|PIP_.*|SSL_CERT_FILE|.*_proxy|.*_PROXY)$/.test(entry[0]) && entry[1] !== undefined,
  ),
);
const once = (env: Record<string, string> = {}) =>
  millrace(["dev", ".", "--input", '{"text":"hello"}'], { folder, env: { ...reach, ...env } });

describe("millrace dev with a Python handler", { timeout: 300_000 }, () => {
  it("makes an environment from requirements.txt, uses it again, and updates it when that changes", async (test) => {
    write("requirements.txt", "six==1.16.0\n");
    write("handler.py", handler('job["input"]["text"].upper() + " " + six.__version__'));
    const first = await once();
    expect(first).toMatchObject({ exit: 0, out: "HELLO 1.16.0\n" });
    expect(first.err).toMatch(/making \.venv from requirements\.txt/);
    const made = statSync(join(folder, ".venv/bin/python"), { bigint: true }).ctimeNs;
    const again = await once();
    expect(again).toMatchObject({ exit: 0, out: "HELLO 1.16.0\n" });
    expect(again.err).not.toContain("making");
    expect(statSync(join(folder, ".venv/bin/python"), { bigint: true }).ctimeNs).toBe(made);

    const going = startMillrace(test, ["dev", "."], { folder, env: reach });
    await going.shows(/handler\.py, Python 3\.\d+, requirements\.txt, environment reused/);
    write("requirements.txt", "six==1.17.0\n");
    await going.shows("! requirements.txt changed: the worker is replaced");
    expect((await millrace(["run", "shout", '{"text":"x"}'], { folder })).out).toBe("X 1.17.0\n");
    write("handler.py", `import nowhere_at_all\n${handler("1")}`);
    await going.shows("! handler.py changed");
    await millrace(["run", "shout", "{}", "--no-wait"], { folder });
    const lacks = (name: string) => `! Python finds no module "${name}"; if a package has it: echo ${name} >> `;
    await going.shows(lacks("nowhere_at_all"));
    write("handler.py", `import iniconfig\n${handler("iniconfig.__name__")}`);
    await going.shows(lacks("iniconfig"));
    const advice = going.screen().split(lacks("iniconfig"))[1]?.split("\n")[0];
    const waiting = millrace(["run", "shout", "{}"], { folder });
    execFileSync("sh", ["-c", `echo iniconfig >> ${advice}`]);
    expect(await waiting).toMatchObject({ exit: 0, out: "iniconfig\n" });
  });

  it("uses uv where it is installed, and the dependencies of pyproject.toml", async () => {
    const tools = join(folder, "../tools");
    execFileSync("python3", ["-m", "venv", tools]);
    execFileSync(join(tools, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "uv"]);
    write("pyproject.toml", '[project]\nname = "shout"\nversion = "1"\ndependencies = ["six==1.16.0", "runpod"]\n');
    write("handler.py", handler("six.__version__"));
    const path = `${join(folder, "../path")}:${process.env.PATH}`;
    mkdirSync(join(folder, "../path"));
    execFileSync("ln", ["-s", join(tools, "bin/uv"), join(folder, "../path/uv")]);
    expect(await once({ PATH: path })).toMatchObject({ exit: 0, out: "1.16.0\n" });
    expect(existsSync(join(folder, ".venv/bin/pip"))).toBe(false); // uv's environments have none
    write("handler.py", `import nowhere_at_all\n${handler("1")}`);
    const advice =
      'module "nowhere_at_all"; if a package has it: add "nowhere_at_all" to the dependencies in pyproject.toml';
    expect((await once({ PATH: path })).err).toContain(advice);
  });

  it("makes .venv anew if its making was interrupted", async (test) => {
    write("requirements.txt", "six==1.16.0\n");
    write("handler.py", handler("six.__version__"));
    const going = startMillrace(test, ["dev", ".", "--input", '{"text":"x"}'], { folder, env: reach });
    await going.shows("making .venv from requirements.txt … (about a minute)");
    await until(() => existsSync(join(folder, ".venv")), 30_000);
    going.interrupt();
    expect(await going.ended).toBe(130);
    expect(await once()).toMatchObject({ exit: 0, out: "1.16.0\n" });
  });

  it("reads the files that requirements.txt names, and says so where Poetry alone is told what is needed", async () => {
    write("requirements.txt", "-r base.txt\n");
    write("base.txt", "six==1.16.0\n");
    write("handler.py", handler("six.__version__"));
    expect(await once()).toMatchObject({ exit: 0, out: "1.16.0\n" });
    write("base.txt", "six==1.17.0\n");
    expect(await once()).toMatchObject({ exit: 0, out: "1.17.0\n" });
    for (const file of ["requirements.txt", "base.txt"]) rmSync(join(folder, file));
    write("pyproject.toml", '[tool.poetry.dependencies]\nsix = "*"\n');
    const refused = await once();
    expect(refused).toMatchObject({ exit: 2, out: "" });
    expect(refused.err).toContain("pyproject.toml lists its packages for Poetry alone.  poetry export");
  });

  it("takes a .venv that is there as it is, and says in words why one cannot be made", async () => {
    write("requirements.txt", "this-package-exists-nowhere==1.0\n");
    write("handler.py", handler("1"));
    const failed = await once();
    expect(failed).toMatchObject({ exit: 1, out: "" });
    expect(failed.err).toMatch(
      /The Python environment could not be made:\n[\s\S]*this-package-exists-nowhere[\s\S]*cd .* && \.venv/,
    );
    rmSync(join(folder, ".venv"), { recursive: true });
    execFileSync("python3", ["-m", "venv", join(folder, ".venv")]);
    const own = await once();
    expect(own.err).toContain("No module named 'runpod'");
    expect(own.err).toContain(
      `Python finds no module "runpod"; if a package has it: ${join(folder, ".venv/bin/python")} -m pip install runpod, then save the handler again`,
    );
  });
});

// Worker images for engines without a registry, made from this machine's own Node.js and Python.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./set-up.mjs";

/** An image with Node.js and, if a handler is given, the handler and our SDK in `/app`. */
export function makeNodeImage(engine, name, { handler, programs = [], files = {}, changes = [] }) {
  const own =
    handler === undefined
      ? { files: {}, changes: [] }
      : {
          files: { "/app/handler.mjs": handler, "/app/worker": join(root, "packages/worker/dist") },
          changes: [`CMD ${JSON.stringify([process.execPath, "/app/worker/run-handler.js", "/app/handler.mjs"])}`],
        };
  return engine.makeImage(name, {
    programs: [process.execPath, ...programs],
    files: { ...own.files, ...files },
    changes: [...own.changes, ...changes],
  });
}

/** An image with Python, the stock package from a virtual environment and, if given, a handler: `/handler.py`. */
export function makePythonImage(engine, name, { handler, venv, programs = [], files = {}, changes = [] }) {
  const { program, library, packages, objects } = pythonOf(venv);
  const own =
    handler === undefined
      ? { files: {}, changes: [] }
      : { files: { "/handler.py": handler }, changes: [`CMD ${JSON.stringify([program, "-u", "/handler.py"])}`] };
  return engine.makeImage(name, {
    programs: [program, ...programs],
    libraries: objects,
    files: { ...libraryFiles(library), ...packageFiles(packages), ...own.files, ...files },
    changes: ["ENV PYTHONPATH=/packages", ...own.changes, ...changes],
  });
}

/**
 * The files of a Python: its program, its library with the libraries that it loads, and the stock package with its
 * requirements. Unused files are left out: compiled files, tests, and a cloud's service descriptions, which are
 * thousands.
 */
function pythonOf(venv) {
  const facts = execFileSync(join(venv, "bin/python"), ["-c", pythonFacts], { maxBuffer: 2 ** 26 });
  return JSON.parse(facts.toString());
}

const pythonFacts = `
import glob, importlib.metadata, json, os, re, sys, sysconfig

found = {}

def find(name):
    key = re.sub("[-_.]+", "-", name).lower()
    if key in found:
        return
    try:
        found[key] = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        found[key] = None  # of another system or version
        return
    for line in found[key].requires or []:
        if "extra ==" not in line:
            find(re.match("[A-Za-z0-9_.-]+", line)[0])

find("runpod")
unused = re.compile(r"^[.][.]|__pycache__|[.]pyi?c$|/tests?/|^botocore/data/")
packages = {
    str(file): str(each.locate_file(file))
    for each in found.values() if each
    for file in each.files if not unused.search(str(file))
}
library = sysconfig.get_paths()["stdlib"]
objects = glob.glob(library + "/lib-dynload/*.so") + [path for path in packages.values() if ".so" in path]
print(json.dumps({"program": os.path.realpath(sys.executable), "library": library, "packages": packages, "objects": objects}))
`;

/** Python's own library, without the other files in its folder. */
const libraryFiles = (library) =>
  Object.fromEntries(
    readdirSync(library)
      .filter(
        (name) =>
          !/^(site-packages|dist-packages|test|idlelib|ensurepip|turtledemo|lib2to3|config-.*|__pycache__)$/.test(name),
      )
      .map((name) => [join(library, name), join(library, name)]),
  );

/** The packages' files, in a separate folder. */
const packageFiles = (packages) =>
  Object.fromEntries(Object.entries(packages).map(([path, from]) => [join("/packages", path), from]));

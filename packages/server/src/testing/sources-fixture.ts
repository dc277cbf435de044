import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const forTests =
  /(\.test\.tsx?|(^|\/)contract\.ts|\/(stores|providers)\/contracts\/.+\.ts|(^|\/)stub-server\.ts|-fixture\.ts)$/;
export const withoutComments = (source: string) => source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");

/** The specifiers in a file: static and dynamic imports, re-exports, and `require`. */
export function importsOf(source: string): string[] {
  const code = withoutComments(source);
  const forms = [
    /^\s*(?:import|export)\s+(?:type\s+)?(?:[\w*{][^;"'`]*?\s)?from\s*["']([^"']+)["']/gm,
    /^\s*import\s*["']([^"']+)["']/gm,
    /\bimport\(\s*["']([^"']+)["']\s*\)/g,
    /\brequire\(\s*["']([^"']+)["']\s*\)/g,
  ];
  return forms.flatMap((form) => [...code.matchAll(form)].map((found) => found[1] as string));
}

/** The folder of all packages. */
export const packages = join(import.meta.dirname, "../../..");
export const names = readdirSync(packages).filter((name) => existsSync(join(packages, name, "package.json")));
/** The sources of all packages, without tests and what only tests use. */
export const files = names
  .flatMap((name) =>
    readdirSync(join(packages, name, "src"), { recursive: true, encoding: "utf8" }).map(
      (path) => `${name}/src/${path}`,
    ),
  )
  .filter((file) => /\.tsx?$/.test(file) && !forTests.test(file))
  .sort();

import { statSync } from "node:fs";

/**
 * What a program loads: the one file that its modules and their libraries were made into, or its own module if that file is
 * missing or older than the compilation of a package that it holds (docs/decisions/0036-bundle.md).
 */
export function bundleOr(own: URL, bundle: URL, compiled: readonly URL[]): string {
  return writtenAt(bundle) > Math.max(...compiled.map(writtenAt)) ? bundle.href : own.href;
}

const writtenAt = (file: URL): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

#!/usr/bin/env node
import module from "node:module";

// Before any other import: the code compiled by a first start makes later ones faster (Node 22 and later).
(module as { enableCompileCache?: () => void }).enableCompileCache?.();

const { startHandler } = await import("./handler/handler-start.js");

// millrace-run-handler <directory or file> [--test-input '<json>']
const isLocation = (arg: string, at: number, args: string[]) =>
  !arg.startsWith("--") && args[at - 1] !== "--test-input";
await startHandler(process.argv.slice(2).find(isLocation) ?? ".");

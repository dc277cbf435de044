import { programOf } from "./python-scripts.js";

/** The Python environment of what only `test:machine` speaks to. */
const environment = ["MILLRACE_TEST_MACHINE_VENV", "machine-venv"] as const;

/** The interpreter of that environment, for LangChain. */
export const pythonWithLangChain = (): string => programOf(...environment, "python", "langchain-runpod");

/** The fuzzer of OpenAPI and GraphQL documents. */
export const schemathesis = (): string => programOf(...environment, "schemathesis", "schemathesis");

import { programOf } from "./python-scripts.js";

/** The interpreter of the Python environment with version 2 of the stock package and with flash. */
export const newerPython = (): string => programOf("MILLRACE_TEST_NEWER_VENV", "newer-venv", "python", "runpod 2");

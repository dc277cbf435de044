import { type Block, blocksOf } from "../docs/guide/blocks.js";

const commands = (): Block[] =>
  blocksOf("kubernetes").filter(
    ({ words, language }) => words.test?.startsWith("tests/kubernetes/") && language === "sh",
  );

/** The commands of docs/guide/kubernetes.md for one of its two ways. */
export const wayBlocks = (way: "beside" | "inside"): Block[] =>
  commands().filter(({ words }) => (words.way ?? way) === way);
/** Its commands for a service that has further clusters. */
export const furtherBlocks = (): Block[] => commands().filter(({ words }) => words.way === "further");

/** The image that the page names, which the node of a test's cluster has already, and its handler. */
export const workerImage = "registry.example/me/worker:1";
export const handler = `
import time
import runpod

def handler(job):
    print("hello from the pod")
    time.sleep(job["input"].get("seconds", 0))
    return {"echo": job["input"]["text"]}

runpod.serverless.start({"handler": handler})
`;

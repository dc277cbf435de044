import type { WebSocket } from "ws";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { type Cluster, ClusterAway, ClusterRefusal } from "./cluster.js";

/** What a command in a pod has come to: its exit code; undefined if it could not be started. */
export interface ExecEnd {
  readonly code: number | undefined;
  /** Why it was no success, in Kubernetes' words. */
  readonly message: string;
}

interface Status {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** Commands take turns with connections to workers, whose lanes are above it. */
const execLane = 0;

/** The channel on which Kubernetes says how the command ended. */
const statusChannel = 3;

/** Runs a command in a pod's container. Throws {@link ClusterRefusal} or {@link ClusterAway}. */
export async function execIn(
  cluster: Cluster,
  pod: string,
  container: string,
  command: readonly string[],
): Promise<ExecEnd> {
  const query = new URLSearchParams({ container, stderr: "true" });
  for (const word of command) query.append("command", word);
  const socket = await cluster.openSocket(`${pod}/exec?${query}`, execLane);
  try {
    return endIn(await statusOn(socket));
  } finally {
    socket.terminate(); // one that is closed waits for the other side's word, which may never come
  }
}

/** Resolves with what the status channel says; rejects if the connection ends before, or nothing is said for long. */
function statusOn(socket: WebSocket): Promise<Status> {
  return new Promise((resolve, reject) => {
    const failed = () => reject(new ClusterAway("the cluster did not run a command in its pod"));
    socket.on("message", (message) => {
      const bytes = message as Buffer;
      if (bytes[0] !== statusChannel || bytes.length < 2 || bytes.length > limits.clusterMessageCharsMax) return;
      try {
        resolve(JSON.parse(bytes.toString("utf8", 1)) as Status);
      } catch {
        failed();
      }
    });
    socket.once("error", failed).once("close", failed);
    realTime.abortAfter(limits.clusterAnswerMs).addEventListener("abort", failed);
    socket.resume();
  });
}

function endIn({ status, message = "", reason, details }: Status): ExecEnd {
  if (status === "Success") return { code: 0, message: "" };
  const code = details?.causes?.find((cause) => cause.reason === "ExitCode")?.message;
  if (reason === "InternalError" || reason === "NonZeroExitCode")
    return { code: code === undefined ? undefined : Number(code), message };
  throw new ClusterRefusal(500, reason ?? "", message);
}

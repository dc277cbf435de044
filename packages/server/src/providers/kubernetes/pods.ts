import type { Pod, Secret } from "kubernetes-types/core/v1.js";
import { realTime, type Signal } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Connect, ImageSpec } from "../../provider.js";
import { type Cluster, ClusterRefusal, statusOf } from "./api-server/cluster.js";
import { execIn } from "./api-server/exec.js";
import { forwardPort } from "./api-server/port-forward.js";
import type { Claims } from "./claims.js";
import { containerName, credentialsGate, environmentOf, nameOf, type PodSettings, podOf, secretsOf } from "./pod.js";
import type { SeenPod } from "./seen-pod.js";

const background = { propagationPolicy: "Background" };
const merge = "application/merge-patch+json";
const mergeLists = "application/strategic-merge-patch+json";

/** The cluster refuses a secret of a worker, whose pod it has admitted. */
export class SecretRefused extends ClusterRefusal {
  constructor({ status, reason, message }: ClusterRefusal) {
    super(status, reason, message);
  }
}

/** The pods of workers in a namespace, with their secrets. */
export class Pods {
  readonly path: string;
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #settings: PodSettings;
  readonly #claims: Claims | undefined;

  constructor(cluster: Cluster, namespace: string, settings: PodSettings, claims: Claims | undefined) {
    this.#cluster = cluster;
    this.#settings = settings;
    this.#claims = claims;
    this.#namespace = `/api/v1/namespaces/${namespace}`;
    this.path = `${this.#namespace}/pods`;
  }

  /** A worker's pod; undefined if there is none. */
  find = (workerId: string): Promise<Pod | undefined> =>
    unlessGone(this.#cluster.ask<Pod>("GET", `${this.path}/${nameOf(workerId)}`));

  /** The environment that a pod takes from its secret. */
  async environmentOf({ spec }: Pod): Promise<Readonly<Record<string, string>>> {
    const name = environmentOf(spec);
    if (name === undefined) return {};
    const secret = await unlessGone(this.#cluster.ask<Secret>("GET", `${this.#namespace}/secrets/${name}`));
    const texts = Object.entries(secret?.data ?? {});
    return Object.fromEntries(texts.map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]));
  }

  /** Why one of a worker's volumes cannot be mounted, in words; undefined if nothing is known. */
  async volumeTrouble({ mounts }: ImageSpec): Promise<string | undefined> {
    const found = await Promise.all(mounts.map(({ volumeId }) => this.#claims?.troubleOf(volumeId)));
    return found.find((words) => words !== undefined);
  }

  /**
   * Makes a worker's pod, and then its secrets, which go with it: a pod waits for its environment, and is kept from nodes
   * until its registry's credentials are there. Rejects with status 409 if there is a pod of that name, and with
   * {@link SecretRefused} if the pod was made and is removed again.
   */
  async make(spec: ImageSpec): Promise<Pod> {
    await this.ensureClaims(spec);
    const pod = await this.#cluster.ask<Pod>("POST", this.path, { body: podOf(spec, this.#settings) });
    try {
      for (const body of secretsOf(spec, pod, this.#settings)) await this.#makeSecret(body);
      if (isHeld(pod)) await this.#letGo(spec.workerId);
    } catch (error) {
      await this.kill(spec.workerId, pod.metadata?.uid).catch(() => {});
      throw error instanceof ClusterRefusal ? new SecretRefused(error) : error;
    }
    return pod;
  }

  /** Makes the claims of a worker's volumes unless they are there. */
  async ensureClaims({ mounts }: ImageSpec): Promise<void> {
    await Promise.all(mounts.map((mount) => this.#claims?.ensure(mount)));
  }

  async #letGo(workerId: string): Promise<void> {
    const body = { spec: { schedulingGates: [{ name: credentialsGate, $patch: "delete" }] } };
    await this.#cluster.ask("PATCH", `${this.path}/${nameOf(workerId)}`, { body, type: mergeLists, isFollowUp: true });
  }

  /** The secret of an earlier pod of this worker may still be there: its removal follows the pod's. */
  async #makeSecret(body: Secret): Promise<void> {
    // its pod may be pulling its image already: it does not wait behind all pods that are to be made
    const make = () => this.#cluster.ask("POST", `${this.#namespace}/secrets`, { body, isFollowUp: true });
    try {
      await make();
    } catch (error) {
      if (statusOf(error) !== 409) throw error;
      await unlessGone(this.#cluster.ask("DELETE", `${this.#namespace}/secrets/${body.metadata?.name}`));
      await make();
    }
  }

  /**
   * Stops or continues all processes of a worker. Only a shell of its own can do that: false if its image has none. The
   * shell does not stop itself.
   */
  async signalAll(workerId: string, signal: "STOP" | "CONT" | "0"): Promise<boolean> {
    const command = ["sh", "-c", `kill -${signal} -1`];
    const { code, message } = await execIn(this.#cluster, `${this.path}/${nameOf(workerId)}`, containerName, command);
    // 126 and 127: there is no shell, or no such command in it
    if (code === undefined || code === 126 || code === 127) return false;
    if (code !== 0) throw new Error(`kill -${signal} in its pod has failed (${code}): ${message}`);
    return true;
  }

  /** Connects to a port of a worker's pod. */
  connect: Connect = ({ id, no }, port) => forwardPort(this.#cluster, `${this.path}/${nameOf(id)}`, port, no);

  /** Has a worker's leader asked to stop; its pod and log stay. False if there is no pod. */
  async stop(workerId: string): Promise<boolean> {
    // a pod whose time is up gets SIGTERM and its grace, as one that is deleted does, but it is kept
    const body = { spec: { activeDeadlineSeconds: 1 } };
    const stopped = this.#cluster.ask("PATCH", `${this.path}/${nameOf(workerId)}`, { body, type: merge });
    return (await unlessGone(stopped)) !== undefined;
  }

  /**
   * Kills a worker's pod. False if there is none. Only where its node does not answer is the pod removed without the
   * node's word; it may still run there.
   */
  async kill(workerId: string, uid: string | undefined, seen?: SeenPod): Promise<boolean> {
    return this.#delete(workerId, uid, seen && isOverdue(seen) ? 0 : 1);
  }

  /** Removes a pod that has ended, or never ran. */
  async remove(workerId: string, uid: string | undefined): Promise<void> {
    await this.#delete(workerId, uid, 0);
  }

  /** Resolves when no pod has this worker's name; false if one still has it after a while. */
  async untilGone(workerId: string, signal: Signal): Promise<boolean> {
    for (let ms = 100, waited = 0; waited < limits.podGoneMs && !signal.aborted; waited += ms) {
      if ((await this.find(workerId)) === undefined) return true;
      ms = Math.min(ms * 2, limits.clusterRetryMs);
      await realTime.sleep(ms, signal);
    }
    return false;
  }

  async #delete(workerId: string, uid: string | undefined, gracePeriodSeconds: number): Promise<boolean> {
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds, ...background, ...preconditions };
    const path = `${this.path}/${nameOf(workerId)}`;
    try {
      return (await unlessGone(this.#cluster.ask("DELETE", path, { body }))) !== undefined;
    } catch (error) {
      if (uid !== undefined && statusOf(error) === 409) return false; // it is another pod by now
      throw error;
    }
  }
}

/** Whether a pod is kept from nodes for its credentials. A cluster that knows no gates has dropped this one. */
const isHeld = ({ spec }: Pod): boolean => spec?.schedulingGates?.some(({ name }) => name === credentialsGate) ?? false;

/** Whether a pod should have gone long ago: its node does not answer. */
export const isOverdue = ({ goneBy }: SeenPod): boolean =>
  goneBy !== undefined && realTime.wallMs() > goneBy + limits.podLostMs;

/** A call's result; undefined if what it is about is not there. */
async function unlessGone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

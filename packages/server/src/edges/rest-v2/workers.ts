import type { v2 } from "@millrace/api";
import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { Parts } from "../../operations/needs.js";
import { showWorkers } from "../../operations/workers/show-workers.js";

type Shown = Awaited<ReturnType<typeof showWorkers>>[number];

/** A worker's state in the words of REST v2. A worker that is closing counts as running while it has a job. */
function statusOf({ state, jobs }: Shown): v2.WorkerStatus {
  if (state === "unhealthy") return "UNHEALTHY";
  if (state === "throttled") return "THROTTLED";
  if (state === "initializing") return "INITIALIZING";
  return jobs > 0 ? "RUNNING" : "IDLE";
}

/** An endpoint's live workers, counted by state. */
export async function workersView(parts: Parts, caller: ApiKey, endpoint: Endpoint) {
  const serving = servingVersion(endpoint);
  const all = await showWorkers(parts, caller, endpoint);
  const shown = all.filter(({ state }) => state !== "ended" && state !== "stopping");
  const now = parts.clock.now();
  const image = parts.registry.template(endpoint.settings.templateId)?.settings.imageName ?? null;
  const workers = shown.map((worker) => {
    const hostNo = parts.registry.worker(worker.id)?.row.hostNo;
    const started = worker.lastStartedAt;
    return {
      id: worker.id,
      status: statusOf(worker),
      isStale: worker.version !== serving,
      version: worker.version,
      gpuCount: worker.gpus.length,
      image: worker.version === endpoint.version ? image : null,
      uptimeSeconds: started === undefined ? null : Math.max(0, Math.floor((now - Date.parse(started)) / 1_000)),
      gpuTypeId: worker.gpus[0]?.name ?? null,
      dataCenterId: parts.here.hosts().find(({ no }) => no === hostNo)?.facts.location ?? null,
      startedAt: started ?? null,
    };
  });
  const count = (status: v2.WorkerStatus) => workers.filter((worker) => worker.status === status).length;
  return {
    workers,
    summary: {
      running: count("RUNNING"),
      idle: count("IDLE"),
      initializing: count("INITIALIZING"),
      throttled: count("THROTTLED"),
      unhealthy: count("UNHEALTHY"),
      total: workers.length,
    },
    endpointVersion: endpoint.version,
  };
}

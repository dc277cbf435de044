import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { createRegistryAuth } from "../../operations/templates/save-registry-auth.js";
import { createVolume } from "../../operations/volumes/save-volume.js";
import { dialled } from "../../operations/workers/find-worker.js";
import { hearUnhealthy } from "../../operations/workers/hear-ping.js";
import { showWorkers } from "../../operations/workers/show-workers.js";
import { type ImageSpec, StartFailed, StartUnsure } from "../../provider.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { startedWorker, wantedWorker } from "../../testing/tended-worker-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

const wanted = () => wantedWorker(scene, endpoint);
const started = () => startedWorker(scene, endpoint);

describe("A worker of any provider", () => {
  it("is reached at the address that its own network gave it, from every server if the address allows it", async () => {
    const network = { reachedFrom: "anywhere", address: "10.1.0.7", published: { 80: 31_080 } } as const;
    scene.provider.traits = { network };
    const template = await scene.template({ imageName: "registry.example/image" });
    endpoint = await scene.endpoint({ templateId: template.id, type: "LB" });
    const worker = await started();
    const { row } = worker;
    expect(row).toMatchObject({ address: "10.1.0.7:80", handle: { provider: "strict", network } });
    for (const hostNo of [row.hostNo, row.hostNo + 1]) {
      expect(dialled(row, hostNo)).toEqual({ host: "10.1.0.7", port: 80, healthPort: 80 });
    }
    const [shown] = await showWorkers(scene.parts, scene.admin, scene.now(endpoint));
    expect(shown).toMatchObject({ privateIp: "10.1.0.7", portMappings: { 80: 31_080 } });
    expect(scene.events).toContainEqual(
      expect.objectContaining({ type: "worker.started", workerId: row.id, provider: "strict", ref: { pid: 100 } }),
    );
  });
});

describe("A worker that is wanted", () => {
  it("is started once, with its own secret, and nothing of the server's environment", async () => {
    const worker = await started();
    await scene.advance(60_000);
    const [launch] = scene.provider.launches;
    expect(scene.provider.launches).toHaveLength(1);
    expect(launch).toMatchObject({
      workerId: worker.row.id,
      from: { directory: scene.directory },
      command: [],
      env: { RUNPOD_POD_ID: worker.row.id, RUNPOD_ENDPOINT_ID: endpoint.id, PATH: "/bin" },
    });
    expect(launch!.env).not.toHaveProperty("SECRET_OF_THE_SERVER");
    expect(worker.row.secretHash).toBe(scene.parts.vault.hash(scene.provider.secretOf(worker.row.id)));
    expect(worker.row).toMatchObject({
      startedAt: expect.any(Number),
      handle: { provider: "strict", ref: { pid: 100 } },
    });
    expect(JSON.stringify(scene.events)).not.toContain(scene.provider.secretOf(worker.row.id));
  });

  it("counts as started when it asks for a job, even if its engine has not yet reported it running", async () => {
    scene.provider.onCall = () => {
      const [worker] = scene.workersOf(endpoint);
      void scene.parts.registry.changeWorker(worker!, { by: "ready", readyAt: scene.clock.now() - 5 });
    };
    const { row } = await started();
    expect(row.startedAt).toBe(row.readyAt);
  });

  it.each(["prepare", "start"] as const)(
    "and that another server ends just before %s is not left running, and never counts as started",
    async (event) => {
      const { change } = scene.stores.workers;
      vi.spyOn(scene.stores.workers, "change").mockImplementation(async (no, made) => {
        if (made.by === event) await change(no, { ...workerChanges.end, endedAt: scene.clock.now() });
        return change(no, made);
      });
      scene.run(scene.loops.tend());
      const worker = await wanted();
      await scene.advance(50);
      expect(scene.provider.isRunning(worker.row.id)).toBe(false);
      expect(worker.row.endedAt).toBeDefined();
      expect(scene.events.filter(({ type }) => type === "worker.started")).toEqual([]);
    },
  );

  it("finds its network volume's folder even if the volume was made on another host", async () => {
    const volume = await createVolume(scene.parts, scene.admin, { name: "models", size: 10, dataCenterId: "here" });
    const folder = join(scene.parts.here.volumes.dir, volume.id);
    rmSync(folder, { recursive: true });
    endpoint = await scene.endpoint({ networkVolumeId: volume.id });
    await started();
    expect(scene.provider.launches.at(-1)!.env.RUNPOD_VOLUME_PATH).toBe(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it("is not started on this host if it belongs to another", async () => {
    scene.run(scene.loops.tend());
    const hostNo = await scene.stores.hosts.ensure("another host", scene.clock.now());
    const made = { id: "elsewhere00001", endpointNo: endpoint.no, version: 1, hostNo, createdAt: scene.clock.now() };
    await scene.parts.registry.createWorker(made);
    scene.parts.bell.ring("workers");
    await scene.advance(1_000);
    expect(scene.provider.calls).toEqual([]);
  });

  it("that cannot be started is a failed start, with a readable reason", async () => {
    scene.run(scene.loops.tend());
    scene.provider.failNext("start", "there is no handler in the directory");
    const worker = await wanted();
    await scene.advance(5);
    expect(worker.row.endedAt).toBeDefined();
    expect(scene.now(endpoint)).toMatchObject({ failedStarts: 1, verdict: "there is no handler in the directory" });
    const id = await scene.submit(endpoint);
    expect(await scene.status(endpoint, id)).toMatchObject({
      waitReason: "start_failed",
      waitDetail: expect.stringContaining("no handler"),
    });
  });

  it("whose image is not a directory has its own files, and gets only the protocol's variables from the server", async () => {
    const template = await scene.template({
      imageName: "registry.example/image",
      dockerEntrypoint: ["/entry"],
      dockerStartCmd: ["serve"],
      env: { GREETING: "hello" },
    });
    endpoint = await scene.endpoint({ templateId: template.id });
    scene.run(scene.loops.tend());
    const worker = await wanted();
    await scene.advance(5);
    const [launch] = scene.provider.launches;
    expect(launch).toMatchObject({
      from: { image: "registry.example/image" },
      entrypoint: ["/entry"],
      command: ["serve"],
      mounts: [],
    });
    expect(launch?.env).toMatchObject({ GREETING: "hello", RUNPOD_POD_ID: worker.row.id });
    for (const name of ["HOME", "PATH"]) expect(launch?.env).not.toHaveProperty(name);
  });

  it("whose endpoint has a volume finds it where images expect it", async () => {
    const { id } = await createVolume(scene.parts, scene.admin, { name: "models", size: 10, dataCenterId: "here" });
    const template = await scene.template({ imageName: "registry.example/image" });
    endpoint = await scene.endpoint({ templateId: template.id, networkVolumeId: id });
    scene.run(scene.loops.tend());
    await wanted();
    await scene.advance(5);
    const [launch] = scene.provider.launches;
    const path = join(scene.parts.here.volumes.dir, id);
    expect(launch).toMatchObject({ mounts: [{ volumeId: id, path, target: "/runpod-volume" }] });
    expect(launch?.env).toMatchObject({ RUNPOD_VOLUME_ID: id, RUNPOD_VOLUME_PATH: "/runpod-volume" });
  });

  it("finds its volume at the template's path, too", async () => {
    const launchFor = async (volumeMountPath?: string) => {
      const { id } = await createVolume(scene.parts, scene.admin, { name: "models", size: 10, dataCenterId: "here" });
      const path = volumeMountPath === undefined ? {} : { volumeMountPath };
      const template = await scene.template({ imageName: "registry.example/image", ...path });
      endpoint = await scene.endpoint({ templateId: template.id, networkVolumeId: id });
      await wanted();
      await scene.advance(5);
      return { id, launch: scene.provider.launches.at(-1) as ImageSpec };
    };
    scene.run(scene.loops.tend());
    const targets = async (path?: string) => (await launchFor(path)).launch.mounts.map(({ target }) => target);
    expect(await targets()).toEqual(["/runpod-volume"]);
    expect(await targets("/models/")).toEqual(["/runpod-volume", "/models"]);
    expect(await targets("/runpod-volume")).toEqual(["/runpod-volume"]);
  });

  it("uses its template's credentials for its image, without revealing them", async () => {
    const given = { name: "mine", username: "someone", password: "a-secret-word" };
    const { id } = await createRegistryAuth(scene.parts, scene.admin, given);
    const template = await scene.template({ imageName: "registry.example/image", containerRegistryAuthId: id });
    endpoint = await scene.endpoint({ templateId: template.id });
    scene.run(scene.loops.tend());
    await wanted();
    await scene.advance(5);
    expect(scene.provider.launches[0]).toMatchObject({
      from: { auth: { username: "someone", password: "a-secret-word" } },
    });
    expect(JSON.stringify([scene.events, scene.provider.launches[0]?.env])).not.toContain("a-secret-word");
  });

  it("that could not be started names the part that failed, if its provider knows it", async () => {
    scene.run(scene.loops.tend());
    scene.provider.failNext("start", new StartFailed("no GPU could be given", "gpu"));
    const worker = await wanted();
    await scene.advance(5);
    expect(worker.row.exit).toEqual({ note: "no GPU could be given", cause: "gpu" });
  });

  it("that ends before it asks for a job is a failed start, with the last lines of its log", async () => {
    const worker = await started();
    scene.provider.logTails.set(worker.row.id, "ModuleNotFoundError: torch");
    scene.provider.end(worker.row.id, { code: 1 });
    await scene.advance(5);
    expect(scene.now(endpoint)).toMatchObject({
      failedStarts: 1,
      verdict: "it ended with exit code 1: ModuleNotFoundError: torch",
    });
    expect(scene.provider.callsOf(worker.row.id).at(-1)).toBe("forget");
  });

  it("that does not ask for a job within its time is killed: a failed start", async () => {
    const worker = await started();
    await scene.advance(899_000);
    expect(scene.provider.isRunning(worker.row.id)).toBe(true);
    await scene.advance(2_000);
    expect(scene.provider.isRunning(worker.row.id)).toBe(false);
    expect(scene.now(endpoint)).toMatchObject({
      failedStarts: 1,
      verdict: expect.stringContaining("did not ask for a job within 900 s"),
    });
  });

  it("that has asked for a job in time is left alone", async () => {
    const worker = await started();
    await scene.advance(890_000);
    await scene.take(worker);
    await scene.advance(3_600_000);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start"]);
  });

  it("whose start is uncertain and that is not found is killed: a failed start, and never started again", async () => {
    scene.run(scene.loops.tend());
    scene.provider.failNext("start", new StartUnsure("the keeper of local workers is gone"));
    const worker = await wanted();
    await scene.advance(5_000);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look", "kill", "forget"]);
    expect(worker.row.endedAt).toBeDefined();
    expect(scene.now(endpoint)).toMatchObject({ failedStarts: 1, verdict: "its keeper was gone" });
  });

  it("whose secret could not be stored is started a little later, since its provider was not called yet", async () => {
    scene.run(scene.loops.tend());
    scene.during("workers.change", () => {
      throw new Error("the database is away");
    });
    const worker = await wanted();
    await scene.advance(limits.netMs - 1);
    expect([scene.provider.calls, worker.row.endedAt]).toEqual([[], undefined]);
    await scene.advance(50);
    expect([scene.provider.calls, worker.row.startedAt]).toEqual([[`start ${worker.row.id}`], expect.any(Number)]);
    expect(scene.provider.secretOf(worker.row.id)).not.toBe("");
    expect(scene.parts.vault.hash(scene.provider.secretOf(worker.row.id))).toBe(worker.row.secretHash);
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("that reports why it is unhealthy fails with that reason", async () => {
    const worker = await started();
    await hearUnhealthy(scene.parts, worker, "gpu: no CUDA device");
    scene.provider.end(worker.row.id, { code: 1 });
    await scene.advance(5);
    expect(scene.now(endpoint).verdict).toBe("gpu: no CUDA device");
  });
});

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { made, refused } from "../../edges/rest-v1/answers-fixture.js";
import { limits } from "../../limits/index.js";
import { clearPodVolumesLoop } from "../../loops/pods/clear-pod-volumes.js";
import { endDuePodsLoop } from "../../loops/pods/end-due-pods.js";
import { image, type Json, PodScene } from "./pods-fixture.js";

let pods: PodScene;
beforeEach(async () => {
  pods = await PodScene.open();
});
afterEach(() => pods.close());

describe("A pod", () => {
  it("is created with the documented defaults, runs at once and stays", async () => {
    const pod = await pods.create();
    expect(pod).toMatchObject({
      name: "my pod",
      desiredStatus: "RUNNING",
      status: "PROVISIONING",
      containerDiskInGb: 50,
      volumeInGb: 20,
      volumeMountPath: "/workspace",
      ports: ["8888/http", "22/tcp"],
      computeType: "GPU",
      gpuCount: 1,
      cloudType: "SECURE",
      locked: false,
      interruptible: false,
      image: "alpine:3",
      portMappings: null,
      publicIp: null,
      lastStatusChange: expect.stringMatching(/^Created by user: /),
    });
    await pods.passed();
    await pods.passed(3_600_000);
    expect(await pods.show(pod.id)).toMatchObject({
      status: "RUNNING",
      gpu: { id: "NVIDIA L4", count: 1, displayName: "L4" },
      machine: { gpuTypeId: "NVIDIA L4", dataCenterId: "CZ", cpuCount: 8 },
      memoryInGb: 16,
      vcpuCount: 8,
      lastStartedAt: expect.any(String),
    });
    expect((await pods.show(pod.id)).uptimeSeconds).toBeGreaterThanOrEqual(3_600);
    expect(pods.launches).toHaveLength(1);
  });

  it("is told who it is and what it has, and nothing of the worker protocol", async () => {
    await made(pods.http.call("PUT", "/v2/account/ssh-keys", { body: { keys: ["ssh-ed25519 AAAA me"] } }));
    const pod = await pods.create({ env: { MINE: "1", RUNPOD_POD_ID: "another" }, ports: ["8888/http"] });
    await pods.passed();
    const [{ env, mounts, ports, command, gpus }] = pods.launches as [Json];
    expect(env).toMatchObject({
      MINE: "1",
      RUNPOD_POD_ID: pod.id,
      RUNPOD_GPU_COUNT: "1",
      RUNPOD_VOLUME_PATH: "/workspace",
      PUBLIC_KEY: expect.stringContaining("ssh-ed25519"),
    });
    expect(Object.keys(env).filter((name) => /WEBHOOK|API_KEY|ENDPOINT/.test(name))).toEqual([]);
    expect(mounts).toMatchObject([{ target: "/workspace", volumeId: `pod-${pod.id}` }]);
    expect([ports, command, gpus]).toEqual([[8888], ["sleep", "infinity"], ["GPU-1"]]);
  });

  it("waits for a place and says what it lacks", async () => {
    const first = await pods.create();
    await pods.passed();
    const second = await pods.create();
    await pods.passed();
    expect(await pods.show(second.id)).toMatchObject({
      status: "PROVISIONING",
      statusDetail: `It needs GPU; free here: 0 of 1; held by pod ${first.id}.`,
    });
    const elsewhere = await pods.create({ countryCodes: ["US"] });
    await pods.passed();
    expect((await pods.show(elsewhere.id)).statusDetail).toMatch(/wants US, and the only host here is in CZ/);
    await pods.act(first.id, "stop");
    await pods.stopped(first.id);
    await pods.passed(limits.netMs);
    expect(await pods.show(second.id)).toMatchObject({ status: "RUNNING" });
  });

  it("keeps its volume over stop and start, and gives its GPU back meanwhile", async () => {
    const pod = await pods.create();
    await pods.passed();
    const volume = join(pods.scene.directory, "volumes", `pod-${pod.id}`);
    expect(existsSync(volume)).toBe(true);
    expect(await pods.act(pod.id, "stop")).toMatchObject({ desiredStatus: "EXITED", status: "EXITED" });
    await pods.stopped(pod.id);
    expect(pods.scene.workersOf(pods.podOf(pod.id))).toEqual([]);
    const other = await pods.create();
    await pods.passed();
    expect((await pods.show(other.id)).status).toBe("RUNNING");
    await pods.http.call("DELETE", `/v1/pods/${other.id}`);
    await pods.passed();
    for (const { row } of pods.scene.parts.registry.liveWorkers()) pods.scene.provider.end(row.id);
    await pods.passed();
    expect(await pods.act(pod.id, "start")).toMatchObject({ desiredStatus: "RUNNING" });
    await pods.passed();
    expect(await pods.show(pod.id)).toMatchObject({
      status: "RUNNING",
      lastStatusChange: expect.stringMatching(/^Started by user/),
    });
    expect(existsSync(volume)).toBe(true);
  });

  it("changes nothing when it is started while it runs, or stopped while it is stopped", async () => {
    const pod = await pods.create();
    await pods.passed();
    const before = (await pods.show(pod.id)).lastStatusChange;
    await pods.passed(5_000);
    expect(await pods.act(pod.id, "start")).toMatchObject({ lastStatusChange: before, status: "RUNNING" });
    await pods.act(pod.id, "stop");
    await pods.stopped(pod.id);
    const since = (await pods.show(pod.id)).lastStatusChange;
    await pods.passed(5_000);
    expect(await pods.act(pod.id, "stop")).toMatchObject({ lastStatusChange: since });
    await refused(pods.http.post(`/v1/pods/${pod.id}/restart`, undefined), 400, /start it instead/);
    expect(await pods.act(pod.id, "reset")).toMatchObject({ desiredStatus: "RUNNING" });
  });

  it.each(["restart", "reset"])("gets a new container on %s", async (what) => {
    const pod = await pods.create();
    await pods.passed();
    const before = pods.workerOf(pod.id).row.id;
    expect(await pods.act(pod.id, what)).toMatchObject({ desiredStatus: "RUNNING" });
    expect((await pods.show(pod.id)).statusDetail).toBe("Its previous container is being stopped.");
    await pods.stopped(pod.id);
    expect(await pods.show(pod.id)).toMatchObject({ status: "RUNNING" });
    expect(pods.workerOf(pod.id).row.id).not.toBe(before);
  });

  it("whose container ends by itself is started again after growing pauses, and says why", async () => {
    const pod = await pods.create();
    await pods.passed();
    pods.scene.provider.logTails.set(pods.workerOf(pod.id).row.id, "no such file");
    pods.end(pod.id, 2);
    await pods.passed(20);
    expect(await pods.show(pod.id)).toMatchObject({
      desiredStatus: "RUNNING",
      status: "ERROR",
      statusDetail: expect.stringMatching(/ended once; it is started again in 1 s.*exit code 2.*no such file/s),
    });
    await pods.passed(1_000);
    expect((await pods.show(pod.id)).status).toBe("RUNNING");
    pods.end(pod.id);
    await pods.passed(20);
    expect((await pods.show(pod.id)).statusDetail).toMatch(/ended 2 times in a row; it is started again in 2 s/);
    await pods.passed(1_500);
    expect(pods.launches).toHaveLength(2);
    await pods.passed(600);
    expect(pods.launches).toHaveLength(3);
    expect(await pods.act(pod.id, "restart")).toMatchObject({ desiredStatus: "RUNNING" });
    await pods.stopped(pod.id);
    expect(pods.launches).toHaveLength(4); // a restart ends the pause
  });

  it("is made anew when its container changes, and not when its name does", async () => {
    const pod = await pods.create();
    await pods.passed();
    expect(await pods.change(pod.id, { name: "renamed", locked: true })).toMatchObject({
      name: "renamed",
      locked: true,
    });
    await pods.stopped(pod.id);
    expect(pods.launches).toHaveLength(1);
    await pods.change(pod.id, { locked: false, env: { NEW: "1" }, volumeInGb: 30 });
    expect(pods.workerOf(pod.id).row).toMatchObject({ wanted: "stopped", why: "its pod was changed" }); // at once
    await pods.stopped(pod.id);
    expect(pods.launches).toHaveLength(2);
    expect(pods.launches[1]?.env).toMatchObject({ NEW: "1" });
    await refused(pods.http.call("PATCH", `/v1/pods/${pod.id}`, { body: { volumeInGb: 10 } }), 400, /can only grow/);
    const bad = await pods.change(pod.id, { imageName: "other:1" });
    expect(bad.image).toBe("other:1");
    await pods.stopped(pod.id);
    for (let n = 0; n < 4; n++) {
      pods.end(pod.id);
      await pods.passed(10_000);
    }
    expect((pods.launches.at(-1) as Json).from.image).toBe("other:1"); // never the image before it
  });

  it("that is locked can be neither stopped, reset nor deleted", async () => {
    const pod = await pods.create({ locked: true });
    await pods.passed();
    for (const what of ["stop", "reset", "restart"])
      await refused(pods.http.post(`/v1/pods/${pod.id}/${what}`, undefined), 400, /locked/);
    await refused(pods.http.call("DELETE", `/v1/pods/${pod.id}`), 400, /locked/);
    expect((await pods.show(pod.id)).status).toBe("RUNNING");
  });

  it("is deleted with its own volume, once its container has ended", async () => {
    pods.scene.run(clearPodVolumesLoop(pods.scene.parts, pods.scene.stores.endpoints));
    const pod = await pods.create();
    await pods.passed();
    const volume = join(pods.scene.directory, "volumes", `pod-${pod.id}`);
    await pods.scene.until(() => existsSync(volume));
    const { row } = pods.workerOf(pod.id);
    pods.scene.provider.killEnds = false; // its container outlives even that
    expect((await pods.http.call("DELETE", `/v1/pods/${pod.id}`)).status).toBe(204);
    await refused(pods.http.get(`/v1/pods/${pod.id}`), 404, /no pod/);
    await pods.passed(2 * limits.podVolumesGapMs);
    expect(existsSync(volume)).toBe(true);
    pods.scene.provider.end(row.id);
    await pods.passed(2 * limits.podVolumesGapMs);
    await pods.scene.until(() => !existsSync(volume));
    const kept = join(pods.scene.directory, "volumes", (await pods.create()).id);
    mkdirSync(kept, { recursive: true });
    await pods.passed(2 * limits.podVolumesGapMs);
    expect(existsSync(kept)).toBe(true);
  });

  it("is looked for again as long as its volume is here, whether anything rings or not", async () => {
    const loop = clearPodVolumesLoop(pods.scene.parts, pods.scene.stores.endpoints);
    const look = async () => {
      const now = pods.scene.clock.now();
      const next = await loop.tick(now, new AbortController().signal);
      return next === undefined ? undefined : next - now;
    };
    const pod = await pods.create();
    await pods.passed();
    expect(await look()).toBe(limits.podVolumesGapMs);
    await pods.act(pod.id, "stop");
    await pods.stopped(pod.id);
    expect(await look()).toBe(limits.podVolumesGapMs);
    expect((await pods.http.call("DELETE", `/v1/pods/${pod.id}`)).status).toBe(204);
    expect([await look(), await look()]).toEqual([0, undefined]);
    expect(existsSync(join(pods.scene.directory, "volumes", `pod-${pod.id}`))).toBe(false);
  });

  it("is stopped and deleted at the times that its user has set", async () => {
    pods.scene.run(endDuePodsLoop(pods.scene.parts));
    const at = (ms: number) => new Date(pods.scene.clock.now() + ms).toISOString();
    const pod = await pods.create({ stopAfter: at(10_000), terminateAfter: at(60_000) });
    await pods.passed(9_000);
    expect((await pods.show(pod.id)).desiredStatus).toBe("RUNNING");
    await pods.passed(3_000);
    expect(await pods.show(pod.id)).toMatchObject({
      desiredStatus: "EXITED",
      lastStatusChange: expect.stringMatching(/^Stopped at its stopAfter/),
    });
    await pods.stopped(pod.id);
    await pods.passed(60_000);
    await refused(pods.http.get(`/v1/pods/${pod.id}`), 404, /no pod/);
    const log = await made(pods.http.get(`/v1/audit?resource=${pod.id}`));
    expect(log.entries.map(({ action }: Json) => action)).toEqual(["pod.delete", "pod.stop", "pod.create"]);
    for (const wrong of ["yesterday", at(-1_000), at(400 * 24 * 3_600_000)])
      await refused(pods.http.post("/v1/pods", { ...image, stopAfter: wrong }), 400, /'stopAfter' must be a time/);
  });

  it("survives a crash of its server", async () => {
    const pod = await pods.create();
    await pods.passed();
    const before = pods.workerOf(pod.id).row.id;
    await pods.restart();
    await pods.passed();
    expect(await pods.show(pod.id)).toMatchObject({ status: "RUNNING" });
    expect([pods.workerOf(pod.id).row.id, pods.launches.length]).toEqual([before, 1]);
  });

  it("runs only where its own volume is", async () => {
    const pod = await pods.create({ computeType: "CPU", volumeInGb: 5 });
    await pods.passed();
    expect(pods.podOf(pod.id).settings.pod.volumeHostNo).toBe(pods.scene.parts.here.hostNo);
    await pods.act(pod.id, "stop");
    await pods.stopped(pod.id);
    const { settings } = pods.podOf(pod.id);
    const away = { ...settings, pod: { ...settings.pod, volumeHostNo: 99 } };
    await pods.scene.parts.registry.saveEndpoint(pods.podOf(pod.id), away, undefined);
    await pods.act(pod.id, "start");
    await pods.passed();
    expect((await pods.show(pod.id)).statusDetail).toBe(
      "Its volume is on a host that is away; it starts when the host is back.",
    );
  });
});

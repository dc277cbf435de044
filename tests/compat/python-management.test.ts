import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { newerPython } from "./environments/newer-python.js";
import { runScript } from "./environments/python-scripts.js";
import { expectOutcomes } from "./outcomes.js";
import { pythonCalls } from "./python-calls.js";
import { handlerFolder, python, removeFolders } from "./stock.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server?.end();
  removeFolders();
});

/** Makes every call with this interpreter's package. */
const findings = (interpreter: string) =>
  runScript(interpreter, "management", {
    env: {
      CLIENT_KEY: server.key,
      RUNPOD_API_BASE_URL: `${server.url}/sdk`,
      RUNPOD_ENDPOINT_BASE_URL: `${server.url}/sdk/v2`,
    },
    words: [handlerFolder("plain").dir, interpreter],
  });

describe("The management functions of the stock Python package", () => {
  it("work over GraphQL in version 1, each of them", async () => {
    const found = await findings(python());
    expect(found.version).toBe("1.12.0");
    expectOutcomes(pythonCalls["1"], found);
    expect(found.run_sync.gave).toEqual({ do: "echo", n: 1 });
    expect(found.create_endpoint.gave).toMatchObject({ idleTimeout: 7, scalerValue: 2, flashBootType: "FLASHBOOT" });
    expect(found.stop_pod.gave).toMatchObject({ desiredStatus: "EXITED" });
    expect(found.left).toEqual([]);
  });

  it("work over REST v2 in version 2, each of them", async () => {
    const found = await findings(newerPython());
    expect(found.version).toMatch(/^2\.0/);
    expectOutcomes(pythonCalls["2"], found);
    expect(found.get_user.gave.pubKey).toMatch(/^ssh-ed25519 /);
    expect(found.run_sync.gave).toEqual({ do: "echo", n: 1 });
    const { id, image } = found.create_endpoint.gave;
    expect(found.create_endpoint.gave).toMatchObject({
      gpu: { pools: ["AMPERE_24"], excludedTypes: ["NVIDIA L4"], count: 1, allowedCudaVersions: ["12.8", "12.9"] },
      workers: { min: 0, max: 1, idleTimeout: 7 },
      scaling: { type: "QUEUE_DELAY", queueDelay: 2 },
      dataCenterIds: ["EU-RO-1"],
      flashboot: "FLASHBOOT",
    });
    expect(image).toBe(found.create_template.gave.image);
    expect(found.get_endpoints.gave).toContainEqual(expect.objectContaining({ id, image }));
    expect(found.update_endpoint_template.gave).toMatchObject({ id, image: "registry.example/image:2", disk: 7 });
    expect(found.create_pod.gave).toMatchObject({
      gpu: { id: "NVIDIA L4", count: 1, allowedCudaVersions: ["12.8"] },
      mounts: { persistent: { size: 1, path: "/runpod-volume" } },
      ports: ["8888/http", "22/tcp"],
      env: { A: "1" },
    });
    expect(found.stop_pod.gave).toMatchObject({ id: found.create_pod.gave.id, status: "EXITED" });
    expect(["PROVISIONING", "STARTING", "RUNNING"]).toContain(found.resume_pod.gave.status);
    expect(found.left).toEqual([]);
  });
});

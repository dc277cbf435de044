import { type Ending, endWith, makeFolder, makeHandler } from "../../e2e/handlers.js";
import { call, makeEndpoint, type TestServer, until } from "../../harness.js";
import type { Made } from "./operation.js";

/** Makes what operations name: with a worker and a pod that run, so that no list in a reply is empty. */
export async function makeObjects(test: Ending, server: TestServer): Promise<Made> {
  const made = async (path: string, body: object): Promise<string> => {
    const reply = await call(server, "POST", `/v1/${path}`, body);
    if (reply.status > 201) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body.id;
  };
  const image = { imageName: "registry.example/image" };
  const env = { A: "1" };
  const volume = await made("networkvolumes", { name: "volume", size: 1, dataCenterId: "EU-RO-1" });
  const workers = { env, networkVolumeId: volume, workersMin: 1, workersMax: 1 };
  const endpoint = await makeEndpoint(server, makeHandler(test), workers, { env, ports: ["8888/http"] });
  endWith(test, server, endpoint);
  const { templateId: template } = (await call(server, "GET", `/v1/endpoints/${endpoint}`)).body;
  const spareTemplateName = "to be deleted";
  await made("templates", { name: spareTemplateName, ...image });
  const pod = async (name: string, more: object = image) => {
    const id = await made("pods", { name, env, ...more });
    test.onTestFinished(async () => void (await call(server, "DELETE", `/v1/pods/${id}`)));
    return id;
  };
  const objects: Made = {
    template,
    spareTemplate: await made("templates", { name: "spare", ...image, env }),
    spareTemplateName,
    endpoint,
    spareEndpoint: await made("endpoints", { name: "spare", templateId: template, workersMax: 0 }),
    volume,
    auth: await made("containerregistryauth", { name: "auth", username: "u", password: "p" }),
    spareAuth: await made("containerregistryauth", { name: "spare", username: "u", password: "p" }),
    secret: await made("secrets", { name: "secret", value: "hidden" }),
    pod: await pod("runs", { imageName: makeFolder(test), dockerStartCmd: ["sleep", "600"], ports: ["8888/http"] }),
    podToStop: await pod("to stop"),
    podToResume: await pod("to resume"),
    podToBid: await pod("to bid for"),
    podToEnd: await pod("to end"),
  };
  await made("secrets", { name: "kept", value: "hidden" });
  await call(server, "POST", `/v1/pods/${objects.podToBid}/stop`);
  await until(async () => (await call(server, "GET", `/v1/pods/${objects.pod}`)).body.status === "RUNNING");
  await until(async () => (await call(server, "GET", `/v1/endpoints/${endpoint}/workers`)).body.length > 0);
  return objects;
}

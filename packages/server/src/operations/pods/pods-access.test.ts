import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { made, refused } from "../../edges/rest-v1/answers-fixture.js";
import { image, type Json, PodScene } from "./pods-fixture.js";

let pods: PodScene;
beforeEach(async () => {
  pods = await PodScene.open();
});
afterEach(() => pods.close());

describe("A pod", () => {
  it("is listed by each filter", async () => {
    const volume = await made(pods.http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "EU-CZ-1" }));
    const template = await made(pods.http.post("/v1/templates", { name: "t", imageName: "from:template" }));
    const one = await pods.create({ name: "one", networkVolumeId: volume.id, dataCenterIds: ["EU-CZ-1"] });
    const { status, json: two } = await pods.http.post("/v1/pods", { name: "two", templateId: template.id });
    expect([status, two.image]).toEqual([201, "from:template"]);
    const cpu = await pods.create({ computeType: "CPU", cpuFlavorIds: ["cpu3g"], vcpuCount: 4 });
    await pods.act(two.id, "stop");
    await pods.passed();
    const ids = async (query: string) => (await made(pods.http.get(`/v1/pods?${query}`))).map(({ id }: Json) => id);
    expect(await ids("")).toEqual([one.id, two.id, cpu.id]);
    expect(await ids("name=one")).toEqual([one.id]);
    expect(await ids(`id=${two.id}`)).toEqual([two.id]);
    expect(await ids("computeType=CPU")).toEqual([cpu.id]);
    expect(await ids("desiredStatus=EXITED")).toEqual([two.id]);
    expect(await ids("imageName=from:template")).toEqual([two.id]);
    expect(await ids(`templateId=${template.id}`)).toEqual([two.id]);
    expect(await ids(`networkVolumeId=${volume.id}`)).toEqual([one.id]);
    expect(await ids("gpuTypeId=NVIDIA%20A40,NVIDIA%20L4")).toEqual([one.id]);
    expect(await ids("cpuFlavorId=cpu3c&cpuFlavorId=cpu3g")).toEqual([cpu.id]);
    expect(await ids("dataCenterId=EU-CZ-1")).toEqual([]);
    expect(await ids("dataCenterId=CZ")).toEqual([one.id, cpu.id]);
    expect(await ids("endpointId=none")).toEqual([]);
    await refused(pods.http.get("/v1/pods?desiredStatus=GONE"), 400, /desiredStatus/);
    const whole = `/v1/pods/${one.id}?includeNetworkVolume=true&includeTemplate=true&includeSavingsPlans=true`;
    expect(await made(pods.http.get(whole))).toMatchObject({ networkVolume: { id: volume.id }, savingsPlans: [] });
    await refused(pods.http.call("DELETE", `/v1/networkvolumes/${volume.id}`), 400, new RegExp(`pod '${one.id}' uses`));
  });

  it("is no endpoint: it is not listed as one, takes no jobs, and its template may go", async () => {
    const template = await made(pods.http.post("/v1/templates", { name: "t", imageName: "from:template" }));
    const { json: pod } = await pods.http.post("/v1/pods", { templateId: template.id });
    await pods.passed();
    expect(await made(pods.http.get("/v1/endpoints"))).toEqual([]);
    await refused(pods.http.get(`/v1/endpoints/${pod.id}`), 404, /no endpoint/);
    await refused(pods.http.post(`/v2/${pod.id}/run`, { input: {} }), 404, /no endpoint/);
    await refused(pods.http.get(`/v2/${pod.id}/health`), 404, /no endpoint/);
    expect((await pods.http.call("DELETE", `/v1/templates/${template.id}`)).status).toBe(204);
    expect(await pods.show(pod.id)).toMatchObject({ image: "from:template", status: "RUNNING" });
  });

  it("of another user, or to a key of chosen endpoints, is like none at all", async () => {
    const pod = await pods.create({ env: { TOKEN: "secret" } });
    const { key } = await pods.scene.stranger();
    await refused(pods.http.get(`/v1/pods/${pod.id}`, { key }), 404, /no pod/);
    await refused(pods.http.post(`/v1/pods/${pod.id}/stop`, undefined, { key }), 404, /no pod/);
    await refused(pods.http.call("DELETE", `/v1/pods/${pod.id}`, { key }), 404, /no pod/);
    expect(await made(pods.http.get("/v1/pods", { key }))).toEqual([]);
    const local = { imageName: pods.scene.directory, dockerStartCmd: ["sleep", "1"] };
    await refused(pods.http.post("/v1/pods", local, { key }), 401, /first admin/);
    const endpoint = await pods.scene.endpoint();
    const bound = await made(
      pods.http.post("/v1/apikeys", { name: "k", scope: { endpoints: [{ id: endpoint.id, access: "run" }] } }),
    );
    await refused(pods.http.get("/v1/pods", { key: bound.key }), 401, /does not see pods/);
    await refused(pods.http.post("/v1/pods", image, { key: bound.key }), 401, /./);
    expect((await pods.show(pod.id)).env).toEqual({ TOKEN: "secret" });
  });

  it("of another user's public template has none of that template's environment", async () => {
    const template = { name: "shared", imageName: "from:template", isPublic: true, env: { TOKEN: "theirs" } };
    const { id: templateId } = await made(pods.http.post("/v1/templates", template));
    const { key } = await pods.scene.stranger();
    const { status, json } = await pods.http.post("/v1/pods", { templateId, env: { MINE: "1" } }, { key });
    expect([status, json.image, json.env]).toEqual([201, "from:template", { MINE: "1" }]);
    const own = await pods.http.post("/v1/pods", { templateId });
    expect(own.json.env).toEqual({ TOKEN: "theirs" });
  });

  it("is refused with what it cannot be made of", async () => {
    const ask = (body: object) => pods.http.post("/v1/pods", body);
    await refused(ask({}), 400, /needs 'imageName'/);
    await refused(ask({ templateId: "none" }), 400, /no template/);
    await refused(ask({ ...image, gpuTypeIds: ["NVIDIA X9"] }), 400, /X9/);
    await refused(ask({ ...image, networkVolumeId: "none" }), 400, /no network volume/);
    await refused(ask({ ...image, volumeMountPath: "/proc" }), 400, /volumeMountPath/);
    await refused(ask({ imageName: pods.scene.directory }), 400, /needs 'dockerStartCmd'/);
    await refused(ask({ ...image, ports: ["http"] }), 400, /port/);
    await refused(ask({ ...image, countryCodes: ["XX"] }), 400, /XX/);
  });

  it("goes with its user: it is named, given away, or deleted, locked or not", async () => {
    const { caller, key } = await pods.scene.stranger();
    const user = pods.scene.parts.registry.user(caller.ownerNo)!;
    const pod = await pods.create({ locked: true }, key);
    await refused(pods.http.call("DELETE", `/v1/users/${user.id}`), 400, /owns 1 pod:/);
    await made(pods.http.post("/v1/users", { name: "heir" }));
    expect((await pods.http.call("DELETE", `/v1/users/${user.id}?deleteResources=true`)).status).toBe(204);
    expect(pods.scene.parts.registry.pod(pod.id)).toBeUndefined();
  });
});

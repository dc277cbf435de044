import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { made, refused } from "./answers-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const newUser = (name: string, role?: string) => made(http.post("/v1/users", { name, ...(role && { role }) }));
const newKey = (body: object, key?: string) =>
  made(http.post("/v1/apikeys", { name: "a key", ...body }, key === undefined ? {} : { key }));
const adminId = () => scene.parts.registry.user(scene.admin.ownerNo)?.id as string;

describe("A user", () => {
  it("is made by an admin, with a secret for webhooks that is shown once", async () => {
    const user = await newUser("Team A");
    expect(user).toMatchObject({ id: expect.stringMatching(/^user_/), name: "Team A", role: "member" });
    expect(user.webhookSecret).toMatch(/^whsec_/);
    const { webhookSecret, ...shown } = user;
    expect(await made(http.get(`/v1/users/${user.id}`))).toEqual(shown);
    expect((await http.get("/v1/users")).text).not.toContain(webhookSecret);
    const { key } = await newKey({ userId: user.id });
    expect(await made(http.get("/v1/webhooks/secret", { key }))).toEqual({ secret: webhookSecret });
  });

  it("is refused without a name, with a name that is taken, and with an unknown role", async () => {
    await newUser("Team A");
    await refused(http.post("/v1/users", {}), 400, /name/);
    await refused(http.post("/v1/users", { name: "Team A" }), 400, /Another user is named 'Team A'/);
    await refused(
      http.post("/v1/users", { name: "Team B", role: "owner" }),
      400,
      /'role' must be one of admin, member/,
    );
  });

  it("sees only itself, and manages no users", async () => {
    const [one, other] = [await newUser("one"), await newUser("other")];
    const { key } = await newKey({ userId: one.id });
    expect((await made(http.get("/v1/users", { key }))).map(({ id }: { id: string }) => id)).toEqual([one.id]);
    expect((await http.get(`/v1/users/${one.id}`, { key })).status).toBe(200);
    await refused(http.get(`/v1/users/${other.id}`, { key }), 404, /no user/);
    await refused(http.post("/v1/users", { name: "more" }, { key }), 401, /Only an admin/);
    for (const path of [`/v1/users/${one.id}`, `/v1/users/${other.id}`]) {
      await refused(http.call("PATCH", path, { key, body: { role: "admin" } }), 401, /Only an admin/);
      await refused(http.call("DELETE", path, { key }), 401, /Only an admin/);
    }
    await refused(http.post(`/v1/users/${other.id}/webhook-secret/rotate`, undefined, { key }), 404, /no user/);
    expect((await made(http.get("/v1/users"))).length).toBe(3);
  });

  it("gets another name and role, which apply to its keys at once", async () => {
    const user = await newUser("one");
    const { key } = await newKey({ userId: user.id });
    const changed = { name: "boss", role: "admin" };
    expect(await made(http.call("PATCH", `/v1/users/${user.id}`, { body: changed }))).toMatchObject(changed);
    expect((await made(http.get("/v1/users", { key }))).length).toBe(2);
    const first = `/v1/users/${adminId()}`;
    await refused(http.call("PATCH", first, { body: { role: "member" } }), 400, /first admin/);
    await refused(http.call("PATCH", first, { key, body: { name: "mine" } }), 401, /Only a key of the first admin/);
    await refused(
      http.post(`${first}/webhook-secret/rotate`, undefined, { key }),
      401,
      /Only a key of the first admin/,
    );
  });

  it("is refused a misspelt quota, which the reply names", async () => {
    await refused(
      http.post("/v1/users", { name: "one", quotas: { wrokers: 1 } }),
      400,
      /'quotas' has no field 'wrokers'/,
    );
  });

  it("is deleted with its keys if it owns nothing", async () => {
    const user = await newUser("one");
    const { key } = await newKey({ userId: user.id });
    expect((await http.call("DELETE", `/v1/users/${user.id}`)).status).toBe(204);
    await refused(http.get("/v1/endpoints", { key }), 401, /valid API key/);
    await refused(http.get(`/v1/users/${user.id}`), 404, /no user/);
    expect((await http.call("DELETE", `/v1/users/${user.id}`)).status).toBe(404);
    await refused(http.call("DELETE", `/v1/users/${adminId()}`), 400, /first admin/);
    expect(await newUser("one")).toMatchObject({ name: "one" }); // the name is free again
  });

  describe("with resources", () => {
    let user: { id: string };
    let key: string;
    let owned: { id: string };
    beforeEach(async () => {
      user = await newUser("one");
      ({ key } = await newKey({ userId: user.id }));
      const auth = await made(
        http.post("/v1/containerregistryauth", { name: "r", username: "u", password: "p" }, { key }),
      );
      const image = { name: "t", imageName: "alpine:3", containerRegistryAuthId: auth.id };
      const template = await made(http.post("/v1/templates", image, { key }));
      await made(http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "EU-RO-1" }, { key }));
      owned = await made(http.post("/v1/endpoints", { name: "e", templateId: template.id, workersMax: 0 }, { key }));
    });

    it("is not deleted until the admin decides what happens to them", async () => {
      const words = /owns 1 endpoint, 1 template, 1 network volume, 1 container registry auth: add \?transferTo=/;
      await refused(http.call("DELETE", `/v1/users/${user.id}`), 400, words);
      const both = `/v1/users/${user.id}?deleteResources=true&transferTo=${adminId()}`;
      await refused(http.call("DELETE", both), 400, /either/);
      await refused(http.call("DELETE", `/v1/users/${user.id}?transferTo=user_nobody`), 404, /no user/);
      await refused(http.call("DELETE", `/v1/users/${user.id}?transferTo=${user.id}`), 400, /another user/);
      expect((await http.get(`/v1/endpoints/${owned.id}`, { key })).status).toBe(200);
    });

    it("gives all of them to another user, who keeps them after a restart", async () => {
      const heir = await newUser("heir");
      const { key: heirs } = await newKey({ userId: heir.id });
      expect((await http.call("DELETE", `/v1/users/${user.id}?transferTo=${heir.id}`)).status).toBe(204);
      const look = async () => {
        for (const list of ["endpoints", "templates", "networkvolumes", "containerregistryauth"])
          expect(await made(http.get(`/v1/${list}`, { key: heirs }))).toHaveLength(1);
        expect((await http.get(`/v1/endpoints/${owned.id}`)).status).toBe(404); // it is not the admin's
      };
      await look();
      await http.close();
      scene = await scene.restart();
      http = await openHttp(scene);
      await look();
    });

    it("records which resources went to which user, and each key that ended", async () => {
      const { id: keyId } = await newKey({ name: "another", userId: user.id });
      const template = (await made(http.get("/v1/templates", { key })))[0];
      const heir = await newUser("heir");
      expect((await http.call("DELETE", `/v1/users/${user.id}?transferTo=${heir.id}`)).status).toBe(204);
      const { entries } = await made(http.get("/v1/audit"));
      const transfer = entries.find(({ action }: { action: string }) => action === "user.transfer");
      expect(transfer).toMatchObject({
        resource: user.id,
        after: { to: heir.id, endpoints: [owned.id], templates: [template.id], volumes: [expect.any(String)] },
      });
      expect(transfer.after).not.toHaveProperty("pods");
      expect((await made(http.get(`/v1/audit?resource=${keyId}`))).entries).toMatchObject([
        { action: "key.delete", before: { name: "another" } },
        { action: "key.create" },
      ]);
      expect(entries.filter(({ action }: { action: string }) => action === "key.delete")).toHaveLength(2);
    });

    it("gives nothing away if a name is taken, and nothing changes", async () => {
      await made(http.post("/v1/templates", { name: "t", imageName: "alpine:3" }));
      await refused(http.call("DELETE", `/v1/users/${user.id}?transferTo=${adminId()}`), 400, /template named 't'/);
      expect(await made(http.get("/v1/templates", { key }))).toHaveLength(1);
    });

    it("gives nothing away if both users have a secret of the same name", async () => {
      const secret = { name: "hf", value: "12345678" };
      for (const options of [{ key }, {}]) await made(http.post("/v1/secrets", secret, options));
      await refused(http.call("DELETE", `/v1/users/${user.id}?transferTo=${adminId()}`), 400, /secret named 'hf'/);
      expect(await made(http.get("/v1/secrets", { key }))).toHaveLength(1);
    });

    it("gives nothing away beyond the quotas of the new owner, and says the numbers", async () => {
      const heir = await newUser("heir");
      const transfer = () => http.call("DELETE", `/v1/users/${user.id}?transferTo=${heir.id}`);
      const limit = async (quotas: object) => made(http.call("PATCH", `/v1/users/${heir.id}`, { body: { quotas } }));
      await limit({ endpoints: 0, templates: 5, volumesGb: 0, keys: 0, pods: 0 });
      const words = /more than it may \(quotas.endpoints 1 > 0, quotas.volumesGb 1 > 0\): raise/;
      await refused(transfer(), 400, words);
      expect(await made(http.get("/v1/endpoints", { key }))).toHaveLength(1);
      await limit({ endpoints: 1, templates: 1, volumesGb: 1, pods: 0 });
      expect((await transfer()).status).toBe(204);
    });

    it("is given away whole while another request deletes it: what has a new owner stays", async () => {
      const heir = await newUser("heir");
      const { key: heirs } = await newKey({ userId: heir.id });
      const template = { name: "more", imageName: "alpine:3" };
      for (let n = 0; n < 5; n++) {
        const { id: templateId } = await made(http.post("/v1/templates", { ...template, name: `t${n}` }, { key }));
        await made(http.post("/v1/endpoints", { name: `e${n}`, templateId, workersMax: 0 }, { key }));
      }
      const asked = ["deleteResources=true", `transferTo=${heir.id}`];
      const both = await Promise.all(asked.map((how) => http.call("DELETE", `/v1/users/${user.id}?${how}`)));
      expect(both.map(({ status }) => status)).toEqual([404, 204]);
      const { entries } = await made(http.get("/v1/audit?limit=100"));
      const actions = entries.map(({ action }: { action: string }) => action);
      const after = actions.slice(0, actions.indexOf("user.transfer"));
      expect(after).toEqual(["user.delete"]);
      const gone = actions.filter((action: string) => action === "endpoint.delete").length;
      expect(await made(http.get("/v1/endpoints", { key: heirs }))).toHaveLength(6 - gone);
    });

    it("is deleted with all of them", async () => {
      expect((await http.call("DELETE", `/v1/users/${user.id}?deleteResources=true`)).status).toBe(204);
      const { registry } = scene.parts;
      expect(registry.endpoints().find(({ id }) => id === owned.id)?.deletedAt).toBeDefined();
      expect(registry.volumes()).toEqual([]);
      expect(registry.registryAuths()).toEqual([]);
      expect(registry.templates().some(({ settings }) => settings.name === "t")).toBe(false);
      const { entries } = await made(http.get("/v1/audit"));
      const deletions = entries.filter(({ action }: { action: string }) => /^(?!user|key).*delete$/.test(action));
      expect(deletions).toHaveLength(4);
      for (const entry of deletions) expect(entry).not.toHaveProperty("before"); // what was in them is not the admin's
    });
  });

  it("gets a new webhook secret, and for a day the old secret signs as well", async () => {
    const [{ status }, before] = [await http.get("/v1/users"), await made(http.get("/v1/webhooks/secret"))];
    expect(status).toBe(200);
    scene.sender.status = 200;
    scene.run(scene.loops.deliver());
    const worker = await scene.worker(endpoint);
    const signed = async () => {
      const id = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
      await scene.done(worker, id);
      await scene.until(async () => {
        await scene.advance(5);
        return scene.sender.posts.some(({ body }) => body.id === id);
      });
      return scene.sender.posts.at(-1)?.headers["webhook-signature"]?.split(" ").length;
    };
    expect(await signed()).toBe(1);
    const { webhookSecret } = await made(http.post(`/v1/users/${adminId()}/webhook-secret/rotate`));
    expect(webhookSecret).not.toBe(before.secret);
    expect(await made(http.get("/v1/webhooks/secret"))).toEqual({ secret: webhookSecret });
    expect(await signed()).toBe(2);
    await scene.advance(limits.webhookSecretOverlapMs);
    expect(await signed()).toBe(1);
  });
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import type { EndpointInput } from "./endpoint-settings.js";
import { updateEndpoint } from "./save-endpoint.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

const update = (input: EndpointInput) => updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), input);
const settings = () => scene.now(endpoint).settings;

describe("An endpoint for clusters", () => {
  const clusters = (...named: [name: string, ...podClasses: string[]][]) =>
    named.map(([name, ...podClasses], at) => ({ no: 10 + at, name, podClasses }));
  const reopen = async (...named: Parameters<typeof clusters>) => {
    await scene.close();
    scene = await Scene.open({ here: { clusters: clusters(...named) } });
    endpoint = await scene.endpoint();
  };

  it("names any cluster or one of them, and the machines again", async () => {
    await reopen(["rack"], ["cloud"]);
    for (const place of ["cluster", "cluster/cloud", "machines"] as const) {
      await update({ place });
      expect(settings().place).toBe(place);
    }
    await update({ place: null });
    expect("place" in settings()).toBe(false);
  });

  const wrong = (input: object, words: RegExp) => refused(update(input), "INVALID_INPUT", words);

  it("names no place that there is not", async () => {
    await wrong({ place: "cluster/rack" }, /no cluster runs workers here; MILLRACE_KUBERNETES adds one/);
    await reopen(["rack"], ["cloud"]);
    await wrong({ place: "cluster/moon" }, /no cluster here has that name; GET \/v1\/hosts shows their names\./);
    for (const place of ["cluster/", "moon"])
      await wrong({ place }, /^'place' must be machines, cluster, or cluster\/ with a cluster's name\.$/);
  });

  it("names a class of pods that a cluster has, and keeps one that it has no more", async () => {
    await wrong({ podClass: "spot" }, /MILLRACE_KUBERNETES_POD/);
    await reopen(["rack", "spot", "large"], ["cloud", "spot"]);
    await update({ podClass: "spot" });
    expect(settings().podClass).toBe("spot");
    await wrong(
      { podClass: "small" },
      /^No cluster here has the pod class 'small'. The pod classes are spot, large\.$/,
    );
    for (const each of scene.parts.here.clusters) Object.assign(each, { podClasses: [] });
    await update({ podClass: "spot", workersMax: 2 });
    await update({ podClass: null });
    expect("podClass" in settings()).toBe(false);
  });
});

import { expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { cancelWaiting } from "../../operations/jobs/change-job.js";
import { Scene } from "../../testing/scene-fixture.js";

it("Very many webhooks of one endpoint that cannot be sent yet delay no other endpoint's", async () => {
  const scene = await Scene.open();
  const submit = async (url: string, count: number, caller = scene.admin) => {
    const { id: templateId } = await scene.template({ imageName: "handler:1" }, caller);
    const endpoint = await scene.endpoint({ templateId }, caller);
    await Promise.all(Array.from({ length: count }, () => scene.submit(endpoint, `{"input":{},"webhook":"${url}"}`)));
    await cancelWaiting(scene.parts, endpoint.no, "purged");
  };
  await submit("https://hanging.example.com/", 4 * limits.webhookPage);
  scene.run(scene.loops.deliver());
  await scene.advance(50);
  await submit("https://other.example.com/", 1, (await scene.stranger()).caller);
  await scene.advance(2 * limits.loopGapMs); // a round over all takes five ticks
  expect(scene.sender.posts.map(({ url }) => url)).toContain("https://other.example.com/");
  await scene.close();
});

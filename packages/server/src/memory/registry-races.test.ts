import { beforeEach, describe, expect, it } from "vitest";
import { plainRelease, workerChanges } from "../testing/facts-fixture.js";
import { holdNext, made, named, now, openServers, others, ours, worker } from "./registry-fixture.js";

openServers();

describe("A read that began before the server's own write does not undo it:", () => {
  beforeEach(async () => {
    await ours.createEndpoint(made);
  });
  const endpoint = () => ours.endpoint(made.id)!;

  /** Runs a write after a read has seen the rows from before it. */
  async function behind(verb: string, write: () => Promise<unknown>): Promise<void> {
    const reading = holdNext(verb, "after");
    const refreshed = ours.refresh();
    await reading.reached;
    await write();
    reading.go();
    await refreshed;
  }

  it("a saved endpoint", async () => {
    await behind("endpoints.all", () => ours.saveEndpoint(endpoint(), named("second"), plainRelease));
    expect(endpoint()).toMatchObject({ settings: { name: "second" }, version: 2 });
    await ours.refresh();
    expect(endpoint()).toMatchObject({ settings: { name: "second" }, version: 2 });
  });

  it("a new endpoint", async () => {
    await behind("endpoints.all", () => ours.createEndpoint({ ...made, id: "endpoint000002" }));
    expect(ours.endpoint("endpoint000002")?.deletedAt).toBeUndefined();
  });

  it("a removed endpoint", async () => {
    await behind("endpoints.all", () => ours.removeEndpoint(endpoint(), now));
    expect(endpoint().deletedAt).toBe(now);
  });

  it("a removed template", async () => {
    const template = await ours.createTemplate({ id: "t", ownerNo: 1, settings: {} as never });
    await behind("templates.all", () => ours.removeTemplate(template));
    expect(ours.template("t")).toBeUndefined();
  });

  it("a new worker, and a closed one", async () => {
    const first = await ours.createWorker({ ...worker, endpointNo: endpoint().no });
    await behind("workers.all", async () => {
      await ours.changeWorker(first, workerChanges.close);
      await ours.createWorker({ ...worker, id: "worker00000002", endpointNo: endpoint().no });
    });
    expect(ours.workersOf(endpoint().no).map(({ row }) => row.wanted)).toEqual(["closed", "running"]);
  });

  it("a worker that is being closed, while the write is still in flight", async () => {
    const first = await ours.createWorker({ ...worker, endpointNo: endpoint().no });
    const writing = holdNext("workers.change", "before");
    const closed = ours.changeWorker(first, workerChanges.close);
    await writing.reached;
    await ours.refresh();
    expect(first.row.wanted).toBe("closed");
    writing.go();
    await closed;
    await ours.refresh();
    expect(first.row.wanted).toBe("closed");
  });

  it("but a later change of another server shows", async () => {
    await behind("endpoints.all", () => ours.saveEndpoint(endpoint(), named("second"), undefined));
    await others.refresh();
    await others.saveEndpoint(others.endpoint(made.id)!, named("third"), undefined);
    await ours.refresh();
    expect(endpoint().settings.name).toBe("third");
  });
});

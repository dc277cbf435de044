import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { access } from "./contracts/access.js";
import { audit } from "./contracts/audit.js";
import { chunks } from "./contracts/chunks.js";
import { deliveries } from "./contracts/deliveries.js";
import { expiry } from "./contracts/expiry.js";
import { holderGuard } from "./contracts/holder-guard.js";
import { idempotency } from "./contracts/idempotency.js";
import { jobLife } from "./contracts/job-life.js";
import { jobTable } from "./contracts/job-table.js";
import { misses } from "./contracts/misses.js";
import { purges } from "./contracts/purges.js";
import { reads } from "./contracts/reads.js";
import { receivers } from "./contracts/receivers.js";
import { registryAuths } from "./contracts/registry-auths.js";
import { idsOf, type Opened, Scene } from "./contracts/scene.js";
import { secrets } from "./contracts/secrets.js";
import { takes } from "./contracts/takes.js";
import { texts } from "./contracts/texts.js";
import { usage } from "./contracts/usage.js";
import { workerRows } from "./contracts/worker-rows.js";

export type { Opened };

/** The parts of the contract, by noun. */
const parts = [
  jobLife,
  jobTable,
  holderGuard,
  takes,
  idempotency,
  expiry,
  purges,
  reads,
  chunks,
  deliveries,
  access,
  audit,
  misses,
  receivers,
  registryAuths,
  secrets,
  texts,
  usage,
  workerRows,
];

/** The queue's contract for every database. `open` makes an empty database; all other access is through the stores. */
export function storeContract(name: string, open: () => Promise<Opened>, { isKept = true } = {}): void {
  describe(name, () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(async () => {
      scene = await Scene.open(open);
      first = await scene.worker("worker00000001");
      second = await scene.worker("worker00000002");
    });
    afterEach(() => scene.end());

    const setting = () => ({ scene, first, second });
    for (const part of parts) part(setting);

    describe("a group of writes", () => {
      it("loses only its bad row", async () => {
        const id = await scene.submit();
        const jobs = [scene.newJob(), scene.newJob({ id }), scene.newJob()];
        const outcomes = await Promise.allSettled(jobs.map((job) => scene.stores.jobs.submit(job)));
        expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
        expect(await scene.tally()).toMatchObject({ waiting: 3 });
        expect(await scene.stores.tallies.recount(scene.endpointNo)).toEqual(await scene.tally());
        expect(idsOf(await scene.take(first, 5))).toEqual([id, jobs[0]!.id, jobs[2]!.id]);
      });
    });

    // a database in memory keeps nothing
    if (isKept)
      describe("after reopening", () => {
        it("keeps everything acknowledged, and continues in the same order", async () => {
          const waiting = await scene.submitMany(2);
          await scene.takeOne(first);
          await scene.append(waiting[0]!, first, '"chunk"');
          const done = await scene.jobIn("IN_QUEUE", first, { webhook: "https://example.com/hook" });
          await scene.change(done, { by: "cancel", error: "no more" });
          const before = await Promise.all([...waiting, done].map((id) => scene.job(id)));
          const tally = await scene.tally();
          const deliveries = await scene.deliveries();
          await scene.reopen();
          expect(await Promise.all([...waiting, done].map((id) => scene.job(id)))).toEqual(before);
          expect([await scene.tally(), await scene.deliveries()]).toEqual([tally, deliveries]);
          const late = await scene.submit();
          expect(idsOf(await scene.take(second, 2))).toEqual([waiting[1], late]);
          expect(await scene.settle(waiting[0]!, first)).toMatchObject({ status: "COMPLETED" });
          expect((await scene.stores.chunks.handOut({ jobNo: before[0]!.no, bytesMax: 10 })).chunks).toHaveLength(1);
        });

        it("recognises a repeat of the chunk that it stored last", async () => {
          const id = await scene.jobIn("IN_PROGRESS", first);
          const { no } = await scene.job(id);
          const post = (n: number) => {
            const pieces = [{ output: `${n}` }];
            return scene.stores.chunks.append({
              endpointNo: scene.endpointNo,
              jobId: id,
              workerNo: first,
              chunks: pieces,
              name: `run-${n}`,
            });
          };
          for (const n of [1, 2]) await post(n);
          await scene.reopen();
          for (const n of [2, 3]) expect(await post(n)).toBe(true);
          expect(
            (await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 100 })).map(({ output }) => output),
          ).toEqual(["1", "2", "3"]);
        });
      });

    it("answers a ping", async () => {
      await scene.stores.ping();
    });
  });
}

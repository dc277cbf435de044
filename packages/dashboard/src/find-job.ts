import type { Seen } from "./queries.js";
import { client } from "./session.js";

const atOnce = 4;
const askedMax = 200;

/** The page of a job whose endpoint is not known: the busiest endpoints are asked first. */
export async function findJob(endpoints: readonly Seen[], jobId: string): Promise<string | undefined> {
  if (jobId === "") return undefined;
  const load = ({ health }: Seen) => (health ? health.jobs.completed + health.jobs.failed + health.jobs.inQueue : 0);
  const asked = endpoints.toSorted((a, b) => load(b) - load(a)).slice(0, askedMax);
  for (let at = 0; at < asked.length; at += atOnce) {
    const some = asked.slice(at, at + atOnce);
    const found = await Promise.all(
      some.map(({ id }) =>
        client()
          .status(id, jobId)
          .then(
            () => id,
            () => undefined,
          ),
      ),
    );
    const id = found.find((each) => each !== undefined);
    if (id) return `/endpoints/${id}/jobs/${encodeURIComponent(jobId)}`;
  }
  return undefined;
}

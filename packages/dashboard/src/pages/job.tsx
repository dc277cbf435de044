import type { JobStory, StatusBody } from "@millrace/api";
import { jobErrorOf } from "@millrace/api/words";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { Action } from "../parts/action.js";
import { Loaded } from "../parts/loaded.js";
import { Status } from "../parts/status.js";
import { Attempts } from "../parts/story/attempts.js";
import { Json } from "../parts/story/json.js";
import { Log } from "../parts/story/log.js";
import { Stream } from "../parts/story/stream.js";
import { Timeline } from "../parts/story/timeline.js";
import { Ago, span } from "../parts/times.js";
import { deliveriesQuery, endpointQuery, inputQuery, isFinal, jobQuery, storyQuery } from "../queries.js";
import { client } from "../session.js";

const route = getRouteApi("/frame/endpoints/$endpointId/jobs/$jobId");
/** A larger input is offered for download, and not shown. */
const inputShownBytes = 1_048_576;

/** One job's story: when and why it waited, started, ran and ended, with all that came of it. */
export function JobPage() {
  const { endpointId, jobId } = route.useParams();
  const endpoint = useQuery(endpointQuery(endpointId));
  const job = useQuery(jobQuery(endpointId, jobId));
  const story = useQuery(storyQuery(endpointId, jobId));
  const { refetch } = job;
  const wasRetried = job.data !== undefined && story.data !== undefined && job.data.status !== story.data.status;
  useEffect(() => {
    if (wasRetried) void refetch();
  }, [wasRetried, refetch]);
  return (
    <>
      <title>{`Job ${jobId} · Millrace`}</title>
      <header className="page-head">
        <h1 className="id">{jobId}</h1>
        <p className="note">
          of{" "}
          <Link to="/endpoints/$endpointId" params={{ endpointId }}>
            {endpoint.data?.name ?? endpointId}
          </Link>
        </p>
      </header>
      <Loaded query={job} what="This job" columns={2} rows={4}>
        {(status) => (
          <Loaded query={story} what="This job's story" columns={2} rows={4}>
            {(told) => <Story endpointId={endpointId} job={status} story={told} />}
          </Loaded>
        )}
      </Loaded>
    </>
  );
}

interface StoryProps {
  readonly endpointId: string;
  readonly job: StatusBody;
  readonly story: JobStory;
}

function Story({ endpointId, job, story }: StoryProps) {
  const isOver = isFinal(job.status);
  return (
    <>
      <p>
        <Status of={job.status} /> {job.waitDetail}
        {job.queuePosition !== undefined && ` · position ${job.queuePosition + 1}`}
      </p>
      <Timeline job={job} story={story} />
      <Acts endpointId={endpointId} job={job} story={story} />
      {job.error !== undefined && <Failure said={job.error} />}
      <div className="side-by-side">
        <Input endpointId={endpointId} story={story} />
        <section aria-labelledby="output">
          <h2 id="output">{job.status === "IN_PROGRESS" ? "Progress" : "Output"}</h2>
          {job.output === undefined ? (
            <p className="note">None{job.status === "IN_QUEUE" ? " yet" : ""}.</p>
          ) : (
            <Json value={job.output} name={job.id} />
          )}
        </section>
      </div>
      <Stream endpointId={endpointId} jobId={job.id} />
      <section aria-labelledby="log">
        <h2 id="log">Its log</h2>
        <JobLog story={story} isOver={isOver} />
      </section>
      {story.webhook !== undefined && <Deliveries jobId={job.id} url={story.webhook} />}
      <Facts story={story} job={job} />
    </>
  );
}

/** What the last worker that took the job printed while it ran. */
function JobLog({ story, isOver }: { readonly story: JobStory; readonly isOver: boolean }) {
  const { workerId, takenAt, finishedAt } = story;
  if (workerId === undefined || takenAt === undefined) return <p className="note">No worker has taken it yet.</p>;
  const times = new URLSearchParams({ since: takenAt, ...(finishedAt && { until: lastWordsAt(finishedAt) }) });
  return (
    <>
      <p className="note">
        What its worker printed from the start of the job until a second after its end, also for other jobs.
      </p>
      <Log
        key={`${workerId} ${takenAt}`}
        path={`/v1/workers/${workerId}/logs?follow=${!isOver}&${times}`}
        label="Lines of this job's worker"
        empty="It has printed nothing."
      />
    </>
  );
}

/** A line has the time at which it is read from the worker, which may be after the job's result has come. */
const lastWordsAt = (finishedAt: string): string => new Date(Date.parse(finishedAt) + 1_000).toISOString();

function Acts({ endpointId, job, story }: StoryProps) {
  const isOver = isFinal(job.status);
  const mayRetry = job.status === "FAILED" || job.status === "TIMED_OUT";
  return (
    <p className="buttons">
      {mayRetry && <Action verb="Retry" isPrimary act={() => client().retry(endpointId, job.id)} />}
      {!isOver && <Action verb="Cancel" act={() => client().cancel(endpointId, job.id)} />}
      {story.inputBytes <= inputShownBytes && (
        <Link
          to="/endpoints/$endpointId/try"
          params={{ endpointId }}
          search={{ from: job.id }}
          className="button small"
        >
          Run again, with changes
        </Link>
      )}
    </p>
  );
}

function Failure({ said }: { readonly said: string }) {
  const { summary, trace } = jobErrorOf(said);
  return (
    <section aria-labelledby="error">
      <h2 id="error">Error</h2>
      <p className="trouble">{summary}</p>
      {trace.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <pre className="trouble" tabIndex={0}>
          {trace.join("\n")}
        </pre>
      )}
    </section>
  );
}

function Input({ endpointId, story }: { readonly endpointId: string; readonly story: JobStory }) {
  const isShown = story.inputBytes <= inputShownBytes;
  const input = useQuery({ ...inputQuery(endpointId, story.id), enabled: isShown });
  return (
    <section aria-labelledby="input">
      <h2 id="input">Input</h2>
      {isShown ? (
        <Loaded query={input} what="The input" columns={1} rows={3}>
          {(value) => <Json value={value} name={`${story.id}-input`} />}
        </Loaded>
      ) : (
        <p className="note">
          {(story.inputBytes / 1_048_576).toFixed(1)} MB, too large to show: GET /v1/endpoints/{endpointId}/jobs/
          {story.id}/input returns it.
        </p>
      )}
    </section>
  );
}

function Deliveries({ jobId, url }: { readonly jobId: string; readonly url: string }) {
  const query = useQuery(deliveriesQuery(jobId));
  return (
    <section aria-labelledby="webhook">
      <h2 id="webhook">Webhook</h2>
      <p className="note">{url}</p>
      <Loaded query={query} what="Its deliveries" rows={2}>
        {(deliveries) =>
          deliveries.length === 0 ? (
            <p className="note">It is sent when the job ends.</p>
          ) : (
            deliveries.map((each) => <Attempts key={each.id} delivery={each} />)
          )
        }
      </Loaded>
    </section>
  );
}

function Facts({ story, job }: { readonly story: JobStory; readonly job: StatusBody }) {
  return (
    <dl className="facts">
      <div>
        <dt>submitted</dt>
        <dd>
          <Ago at={story.createdAt} />
        </dd>
      </div>
      <div>
        <dt>starts</dt>
        <dd>{story.starts}</dd>
      </div>
      <div>
        <dt>time limit</dt>
        <dd>{span(story.executionTimeoutMs)}</dd>
      </div>
      <div>
        <dt>worker</dt>
        <dd className="id">{job.workerId || "none yet"}</dd>
      </div>
      <div>
        <dt>expires</dt>
        <dd>{new Date(story.expiresAt).toLocaleString()}</dd>
      </div>
    </dl>
  );
}

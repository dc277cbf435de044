import { type JobStory, Submission } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { Snippet } from "../../parts/copy.js";
import { Fields } from "../../parts/form/fields.js";
import { fieldsOf, type Values } from "../../parts/form/schema.js";
import { Loaded } from "../../parts/loaded.js";
import { Status } from "../../parts/status.js";
import { readJson } from "../../parts/story/exact.js";
import { Json } from "../../parts/story/json.js";
import { Stream } from "../../parts/story/stream.js";
import { span } from "../../parts/times.js";
import { Trouble } from "../../parts/trouble.js";
import { inputQuery, jobQuery, storyQuery } from "../../queries.js";
import { client } from "../../session.js";
import { snippets, submissionOf } from "./snippets.js";

const route = getRouteApi("/frame/endpoints/$endpointId/try");

const optionFields = fieldsOf(Submission, ["webhook", "policy", "s3Config"]);
const example = '{\n  "prompt": "hello"\n}';

/** Sends a job and watches it: why it waits, what it streams, what comes of it. */
export function TryIt() {
  const { endpointId } = route.useParams();
  const { from } = route.useSearch();
  const isAgain = from !== undefined;
  const input = useQuery({ ...inputQuery(endpointId, from ?? ""), enabled: isAgain });
  const story = useQuery({ ...storyQuery(endpointId, from ?? ""), enabled: isAgain });
  if (!isAgain) return <Trial key={endpointId} endpointId={endpointId} first={{ input: example, options: {} }} />;
  return (
    <Loaded query={input} what="The input of that job" columns={1}>
      {(value) => (
        <Loaded query={story} what="That job" columns={1}>
          {(told) => (
            <Trial
              key={`${endpointId} ${from}`}
              endpointId={endpointId}
              first={{ input: JSON.stringify(value, undefined, 2), options: optionsOf(told) }}
            />
          )}
        </Loaded>
      )}
    </Loaded>
  );
}

/** What a job was submitted with besides its input, as far as its story tells. */
const optionsOf = ({ webhook, executionTimeoutMs: executionTimeout, lowPriority }: JobStory): Values => ({
  ...(webhook && { webhook }),
  policy: { executionTimeout, ...(lowPriority && { lowPriority }) },
});

interface TrialProps {
  readonly endpointId: string;
  /** What the form holds at first: the input as JSON, and the other fields of a submission. */
  readonly first: { readonly input: string; readonly options: Values };
}

function Trial({ endpointId, first }: TrialProps) {
  const [text, setText] = useState(first.input);
  const [options, setOptions] = useState<Values>(first.options);
  const [jobId, setJobId] = useState<string>();
  const [trouble, setTrouble] = useState<Error>();
  const field = useId();

  async function start() {
    setTrouble(undefined);
    setJobId(undefined);
    try {
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
        throw new Error("The input must be a JSON object, such as {}.");
      setJobId((await submit(endpointId, submissionOf({ input: text, options }))).id);
    } catch (error) {
      setTrouble(error as Error);
    }
  }

  return (
    <>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <label htmlFor={field}>Input, a JSON object</label>
        <textarea
          id={field}
          className="code"
          rows={8}
          spellCheck={false}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <details className="form">
          <summary>Webhook, policy and storage</summary>
          <Fields fields={optionFields} values={options} change={setOptions} />
        </details>
        <Trouble error={trouble} />
        <p className="buttons">
          <button type="submit" className="primary">
            Run
          </button>
        </p>
      </form>
      {jobId && <Watched key={jobId} endpointId={endpointId} jobId={jobId} />}
      <Snippets endpointId={endpointId} text={text} options={options} />
    </>
  );
}

async function submit(endpointId: string, job: string): Promise<{ id: string }> {
  return client().callText("POST", `/v2/${endpointId}/run`, job);
}

function Watched({ endpointId, jobId }: { readonly endpointId: string; readonly jobId: string }) {
  const { data: job, error } = useQuery(jobQuery(endpointId, jobId));
  return (
    <section className="panel" aria-labelledby="watched" aria-live="polite">
      <h2 id="watched">
        {job ? <Status of={job.status} /> : "sent"}{" "}
        <Link to="/endpoints/$endpointId/jobs/$jobId" params={{ endpointId, jobId }} className="id">
          {jobId}
        </Link>
      </h2>
      {job && (
        <p className="note">
          waited {span(job.delayTime)}
          {job.status !== "IN_QUEUE" && `, ran ${span(job.executionTime)}`}
          {job.waitDetail && ` · ${job.waitDetail}`}
        </p>
      )}
      <Trouble error={error} />
      <Stream endpointId={endpointId} jobId={jobId} />
      {job?.error && <pre className="trouble">{job.error}</pre>}
      {job?.output !== undefined && (
        <>
          <h3>{job.status === "IN_PROGRESS" ? "Progress" : "Output"}</h3>
          <Json value={job.output} name={jobId} />
        </>
      )}
    </section>
  );
}

function Snippets({
  endpointId,
  text,
  options,
}: {
  readonly endpointId: string;
  readonly text: string;
  readonly options: Values;
}) {
  const [chosen, setChosen] = useState<keyof typeof snippets>("curl");
  return (
    <section aria-labelledby="code">
      <h2 id="code">The same from your code</h2>
      <p className="filters">
        {(Object.keys(snippets) as (keyof typeof snippets)[]).map((name) => (
          <button
            key={name}
            type="button"
            className="chip"
            aria-pressed={chosen === name}
            onClick={() => setChosen(name)}
          >
            {name}
          </button>
        ))}
      </p>
      <Snippet text={snippets[chosen]({ url: location.origin, endpointId, input: inOneLine(text), options })} />
    </section>
  );
}

function inOneLine(text: string): string {
  try {
    return JSON.stringify(readJson(text));
  } catch {
    return "{}";
  }
}

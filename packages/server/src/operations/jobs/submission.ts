import type { JsonText, Policy } from "../../domain/jobs/job.js";
import { invalid, Refusal } from "../../errors.js";
import {
  beginningOf,
  type Checked,
  checkInput,
  jsonOf,
  type ReceivedText,
  type Span,
  textOf,
} from "../../json/json.js";
import { limits } from "../../limits/index.js";

/** A checked submission body. Texts are JSON as received. */
export interface Submission {
  /** The whole body. */
  readonly bytes: Buffer;
  readonly input: JsonText;
  readonly webhook: string | undefined;
  readonly policy: Policy;
  readonly policyText: string | undefined;
  readonly s3Config: string | undefined;
  readonly ignored: Ignored;
}

/** The names of the first few fields that are unknown, so that a misspelt one can be told, and how many there are. */
export interface Ignored {
  readonly names: readonly string[];
  readonly count: number;
}

const nothing: Ignored = { names: [], count: 0 };

/** Reads the body of `/run` and `/runsync` (contract: Job submission body). Unknown fields are ignored. */
export async function readSubmission(body: ReceivedText): Promise<Submission> {
  const checked = await checkInput(body);
  if (!checked.scan.ok) {
    throw new Refusal(
      "INVALID_JSON",
      `The request body is not valid JSON: ${checked.scan.why} (at position ${checked.scan.at}).`,
    );
  }
  if (checked.scan.kind !== "object") throw invalid("The body must be a JSON object with an 'input' object in it.");
  const span = checked.scan.members.get("input");
  if (!span || checked.bytes[span.start] !== 0x7b) {
    throw invalid(`'input' ${span ? "is not" : "is missing: it must be"} a JSON object; send {"input": {…}}.`);
  }
  const policyText = objectText(checked, "policy");
  const policy = policyText === undefined ? {} : JSON.parse(policyText);
  return {
    bytes: checked.bytes,
    input: jsonOf(checked.bytes, span),
    webhook: readWebhook(webhookText(checked)),
    policy: readPolicy(policy),
    policyText,
    s3Config: readS3Config(objectText(checked, "s3Config")),
    ignored: ignoredIn(checked, policy),
  };
}

const policyNames = ["executionTimeout", "ttl", "lowPriority"];

function ignoredIn({ bytes, scan }: Checked, policy: Record<string, unknown>): Ignored {
  const inPolicy = Object.keys(policy).filter((name) => !policyNames.includes(name));
  if (!scan.ok || scan.othersCount + inPolicy.length === 0) return nothing;
  const beside = scan.others.map((span) => beginningOf(bytes, span, limits.ignoredNameCharsMax));
  const within = inPolicy.slice(0, limits.ignoredNamesMax).map((name) => `policy.${name}`);
  return { names: [...within, ...beside], count: scan.othersCount + inPolicy.length };
}

/** A member that is given and not null. Check its length before making a text of it: it may be most of the body. */
function member({ bytes, scan }: Checked, name: string): Span | undefined {
  const span = scan.ok ? scan.members.get(name) : undefined;
  return span && bytes[span.start] !== 0x6e ? span : undefined; // it is JSON: only null begins with an n
}

const bytesOf = ({ start, end }: Span): number => end - start;

function objectText(checked: Checked, name: string): string | undefined {
  const span = member(checked, name);
  if (!span) return undefined;
  if (checked.bytes[span.start] !== 0x7b) throw invalid(`'${name}' must be a JSON object.`);
  if (bytesOf(span) > limits.jobFieldBytesMax) {
    throw invalid(`'${name}' is longer than ${limits.jobFieldBytesMax} bytes.`);
  }
  return textOf(checked.bytes, span);
}

function webhookText(checked: Checked): string | undefined {
  const span = member(checked, "webhook");
  if (!span) return undefined;
  // a UTF-16 unit takes at most three bytes
  if (bytesOf(span) > 3 * limits.webhookUrlCharsMax) throw badWebhook();
  return textOf(checked.bytes, span);
}

const badWebhook = () =>
  invalid(`'webhook' must be an http or https URL of at most ${limits.webhookUrlCharsMax} characters.`);

function readWebhook(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = text.length <= limits.webhookUrlCharsMax ? JSON.parse(text) : undefined;
  if (url === "") return undefined;
  if (typeof url === "string" && /[\0-\x20\x7f]/.test(url))
    throw invalid("'webhook' contains a space or a control character.");
  const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) throw badWebhook();
  return url;
}

function readPolicy(policy: Record<string, unknown>): Policy {
  const { lowPriority } = policy;
  if (lowPriority !== undefined && lowPriority !== null && typeof lowPriority !== "boolean") {
    throw invalid("'policy.lowPriority' must be true or false.");
  }
  const executionTimeoutMs = millis(
    policy,
    "executionTimeout",
    limits.executionTimeoutMsMin,
    limits.executionTimeoutMsMax,
  );
  const ttlMs = millis(policy, "ttl", limits.ttlMsMin, limits.ttlMsMax);
  return {
    lowPriority: lowPriority === true,
    ...(executionTimeoutMs === undefined ? {} : { executionTimeoutMs }),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  };
}

function millis(policy: Record<string, unknown>, name: string, min: number, max: number): number | undefined {
  const value = policy[name];
  if (value === undefined || value === null) return undefined;
  if (!Number.isInteger(value) || (value as number) < min || (value as number) > max) {
    throw invalid(`'policy.${name}' must be a whole number of milliseconds from ${min} to ${max}.`);
  }
  return value as number;
}

function readS3Config(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  for (const [name, value] of Object.entries(JSON.parse(text))) {
    if (typeof value !== "string") throw invalid(`'s3Config.${name.slice(0, 50)}' must be a string.`);
  }
  return text;
}

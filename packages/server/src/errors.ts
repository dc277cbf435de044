import { type RefusalCode, refusals } from "./domain/refusals.js";
import { limits } from "./limits/index.js";

/** An error that callers are told: a code from the table, and a sentence that says what to do. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  /** Whether the key is valid, and lacks a right. */
  readonly isForbidden: boolean;
  constructor(
    code: RefusalCode,
    sentence: string,
    options: { retryAfterSeconds?: number; isForbidden?: boolean } = {},
  ) {
    // whoever is refused reads the sentence; a stack that nobody reads costs more than the rest of most refusals
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(sentence);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "Refusal";
    this.code = code;
    this.status = refusals[code].status;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.isForbidden = options.isForbidden === true;
  }

  /** HTTP headers that go with its status. */
  get headers(): Readonly<Record<string, string>> {
    return {
      ...(this.retryAfterSeconds === undefined ? {} : { "retry-after": String(this.retryAfterSeconds) }),
      ...(this.status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...(this.status === 405 ? { allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" } : {}),
    };
  }
}

/** The store cannot take more right now; the same call may be repeated. */
export const busy = () =>
  new Refusal("UNAVAILABLE", "The service has too much to write just now; try again in a second.", {
    retryAfterSeconds: 1,
  });

/** The database does not answer: a call that may be sent again may succeed soon. */
export const storeAway = () =>
  new Refusal("UNAVAILABLE", "The database does not answer just now; try again in a second.", { retryAfterSeconds: 1 });

/** `named`: the id of the caller's own endpoint that has what was given as its name. */
export const endpointNotFound = (id: string, named?: string) =>
  new Refusal(
    "ENDPOINT_NOT_FOUND",
    named === undefined
      ? `There is no endpoint '${clip(id)}' for this key; the list of endpoints shows yours.`
      : `'${clip(id)}' is the name of an endpoint: send its id, ${named}, instead.`,
  );

export const jobNotFound = (id: string) =>
  new Refusal(
    "JOB_NOT_FOUND",
    `There is no job '${clip(id)}' here; it never existed, or its ttl or retention has passed.`,
  );

export const routeNotFound = (method: string, url: string) =>
  new Refusal("NOT_FOUND", `There is no ${method} ${clip(url.split("?", 1)[0] as string)} here.`);

export const logElsewhere = (hostNo: number) =>
  new Refusal(
    "LOG_ELSEWHERE",
    `This worker's log is kept by host ${hostNo}, whose server does not answer this one: try again when it does.`,
  );

export const unauthorized = (why = "Send a valid API key in the Authorization header.") =>
  new Refusal("UNAUTHORIZED", why);

/** The key is valid, but may not do this. The contract's interfaces answer 401, REST v2 answers 403. */
export const forbidden = (why: string) => new Refusal("UNAUTHORIZED", why, { isForbidden: true });

export const invalid = (sentence: string) => new Refusal("INVALID_INPUT", sentence);

export const nestedTooDeep = () =>
  invalid(`The body's JSON is nested deeper than ${limits.managementDepthMax} levels; no field here needs that.`);

export const bodyTooLarge = (bytesMax: number) =>
  new Refusal("PAYLOAD_TOO_LARGE", `The body is larger than the ${bytesMax / 1_048_576} MB that this route takes.`);

export const malformed = () =>
  new Refusal("INVALID_INPUT", "The request is malformed: check its headers and its body's length.");

const clip = (text: string) => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

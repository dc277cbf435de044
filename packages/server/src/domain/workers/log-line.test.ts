import { describe, expect, it, test } from "vitest";
import { limits } from "../../limits/index.js";
import { HiddenTexts, isOfJob, markOf, momentOf } from "./log-line.js";

const job = "01890a5d-ac96-774b-bcce-b302099a8057-u1";
const marked = (more: object = {}) => JSON.stringify({ requestId: job, message: "half done", level: "INFO", ...more });

describe("The mark of a line", () => {
  test.each([
    { it: "is read from JSON", text: marked(), mark: { jobId: job, message: "half done", level: "INFO" } },
    { it: "may have no job", text: marked({ requestId: null }), mark: { message: "half done", level: "INFO" } },
    {
      it: "is read with Python's spacing",
      text: `{"requestId": "${job}", "level": "WARN"}`,
      mark: { jobId: job, level: "WARN" },
    },
    { it: "is read even if its end is cut off", text: marked().slice(0, 70), mark: { jobId: job } },
    {
      it: "is read from the plain form",
      text: `INFO   | ${job} | Started.`,
      mark: { jobId: job, level: "INFO", message: "Started." },
    },
    {
      it: "has no job in the plain form",
      text: "ERROR  | no such | thing",
      mark: { level: "ERROR", message: "no such | thing" },
    },
    { it: "is absent in other JSON", text: '{"id":"a"}', mark: {} },
    { it: "is absent if the values have other types", text: '{"requestId":7,"level":{},"message":[]}', mark: {} },
    { it: "is absent in a list", text: '["requestId"]', mark: {} },
    { it: "is absent in plain text", text: `about ${job}`, mark: {} },
  ])("$it", ({ text, mark }) => expect(markOf(text)).toEqual(mark));

  it("assigns a line to a job, while a mere mention of the job does not", () => {
    expect([isOfJob(marked(), job), isOfJob(`about ${job}`, job), isOfJob(marked({ message: "b" }), "b")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("A moment", () => {
  const now = 1_790_000_000_000;
  test.each([
    ["2026-09-21T14:13:20Z", now],
    ["2026-09-21T16:13:20.250+02:00", now + 250],
    ["1790000000000", now],
    ["0", 0],
    ["10m", now - 600_000],
    ["1.5h", now - 5_400_000],
    ["250ms", now - 250],
    ["2d", now - 172_800_000],
    ["yesterday", undefined],
    ["2026-09-21", undefined],
    ["2026-13-41T99:00:00Z", undefined],
    ["-10m", undefined],
    ["10 m", undefined],
    ["", undefined],
  ])("'%s' is %s", (said, at) => expect(momentOf(said, now)).toBe(at));
});

it("A secret is masked both literally and in its JSON form; an empty one is ignored", () => {
  const secret = 'a"b\\c';
  expect(new HiddenTexts([secret, ""]).mask(`${secret} ${JSON.stringify({ secret })}`)).toBe('**** {"secret":"****"}');
});

describe("A secret in a log", () => {
  it.each([
    ["a key file's line", "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\n-----END KEY-----\n", "MIIEowIBAAKCAQEA"],
    ["a value whose last line break is not printed", "hf_token\n", "hf_token"],
    ["a value in JSON of ASCII alone", "sécret-é", String.raw`s\u00e9cret-\u00e9`],
    ["a value in JSON with escaped slashes", "a/secret/path", String.raw`a\/secret\/path`],
  ])("is masked as %s", (_name, secret, shown) => {
    expect(new HiddenTexts([secret]).mask(`before ${shown} after`)).toBe("before **** after");
  });

  it("is masked whole where a shorter one begins it", () => {
    const hidden = new HiddenTexts(["hunter"]);
    hidden.add("hunter2-and-a-long-tail");
    expect(hidden.mask("hunter2-and-a-long-tail hunter")).toBe("**** ****");
  });

  it("is masked line by line if it is new, and whole if there are many: each line of a log costs a search for each", () => {
    const { logSecretsMax, logSecretLinesMax, secretLinesMax } = limits;
    const secretOf = (n: number) => Array.from({ length: secretLinesMax }, (_, at) => `s${n}line${at}`).join("\n");
    const hidden = new HiddenTexts(["own1\nown2"]);
    for (let n = 0; n < logSecretsMax; n++) hidden.add(secretOf(n));
    expect(hidden.size).toBeGreaterThan(logSecretLinesMax / 2);
    expect(hidden.size).toBeLessThanOrEqual(logSecretLinesMax + 2 * (logSecretsMax + 1));
    expect(hidden.mask(`own2 s${logSecretsMax - 1}line7 s0line7`)).toBe("**** **** s0line7");
    expect(hidden.mask(`<${secretOf(0)}>`)).toBe("<****>");
    hidden.add(secretOf(0)); // of another job: again the newest
    expect(hidden.mask("s0line7")).toBe("****");
  });
});

import { expect, it } from "vitest";
import { shownText } from "./worker-lines.js";

const marked = (message: string, level = "INFO") => ({ atUs: 1, text: `${level} | ${message}`, level, message });
const dump = '{\n "error_traceback": "Traceback", "runpod_version": "1.12.0"\n}';

it.each([
  ["a plain line as it is", { atUs: 1, text: "  loading…" }, "  loading…"],
  ["a marked line without its mark", marked("half way"), "half way"],
  ["an error that the handler logs", marked('"error_traceback" is a word', "ERROR"), '"error_traceback" is a word'],
  ["nothing for the start of a job", marked("Started."), undefined],
  ["nothing for a count of jobs", marked("Jobs in progress: 3"), undefined],
  ["nothing for what is meant for the package's developers", marked("polling", "DEBUG"), undefined],
  ["nothing for the traceback that the job's end shows", marked(dump, "ERROR"), undefined],
  [
    "nothing for our worker's line about a failed job, which the job's end shows",
    {
      atUs: 1,
      text: '{"requestId":"a","message":"Error: bad","level":"ERROR","outcome":"FAILED"}',
      level: "ERROR",
      message: "Error: bad",
    },
    undefined,
  ],
  [
    "nothing for the package's banner",
    { atUs: 1, text: "--- Starting Serverless Worker |  Version 1.12.0 ---" },
    undefined,
  ],
])("A person sees %s", (_, line, shown) => {
  expect(shownText(line)).toBe(shown);
});

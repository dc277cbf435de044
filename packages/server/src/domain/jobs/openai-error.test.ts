import { describe, expect, it } from "vitest";
import { errorIn, errorOfJob, errorText, errorType } from "./openai-error.js";

const dict = `{'object': 'error', 'message': "The model 'x' is unknown.", 'type': 'NotFoundError', 'param': None, 'code': 404}`;

describe("A failed job's error", () => {
  it.each([
    {
      it: "that is the text of a Python dict keeps its message, type and code, which is the status",
      text: dict,
      error: { status: 404, message: "The model 'x' is unknown.", type: "NotFoundError", param: null, code: 404 },
    },
    {
      it: "may be a dict within a dict",
      text: "{'error': {'message': 'no', 'type': 'BadRequestError', 'param': 'n', 'code': 400}}",
      error: { status: 400, message: "no", type: "BadRequestError", param: "n", code: 400 },
    },
    {
      it: "may be JSON",
      text: '{"message": "slow down", "type": "rate", "code": 429}',
      error: { status: 429, message: "slow down", type: "rate", param: null, code: 429 },
    },
    {
      it: "of an exception in the stock package is the raised message, without its traceback",
      text: '{"error_type": "<class \'ValueError\'>", "error_message": "bad prompt", "error_traceback": "Traceback …"}',
      error: { status: 500, message: "bad prompt", type: "server_error", param: null, code: "JOB_FAILED" },
    },
    {
      it: "that is a sentence is the message",
      text: "out of memory",
      error: { status: 500, message: "out of memory", type: "server_error", param: null, code: "JOB_FAILED" },
    },
    {
      it: "that is some other dict is its own text",
      text: "{'why': 'so'}",
      error: { status: 500, message: "{'why': 'so'}", type: "server_error", param: null, code: "JOB_FAILED" },
    },
    {
      it: "whose code is not an HTTP error status is a 500",
      text: "{'message': 'm', 'code': 200}",
      error: { status: 500, message: "m", type: "server_error", param: null, code: 200 },
    },
    {
      it: "whose code is a word is a 500 with that word",
      text: "{'message': 'm', 'code': 'context_length_exceeded'}",
      error: { status: 500, message: "m", type: "server_error", param: null, code: "context_length_exceeded" },
    },
  ])("$it", ({ text, error }) => {
    expect(errorOfJob(text)).toEqual(error);
  });
});

describe("An output", () => {
  it.each([
    { it: "of the kind error is an error", output: { object: "error", message: "m", code: 422 }, status: 422 },
    { it: "with an error in it is an error", output: { error: { message: "m", code: 503 } }, status: 503 },
    { it: "with an error's text in it is an error", output: { error: "{'message': 'm', 'code': 403}" }, status: 403 },
    { it: "with a sentence as its error is an error", output: { error: "m" }, status: 500 },
  ])("$it", ({ output, status }) => {
    expect(errorIn(output)).toMatchObject({ status, message: "m" });
  });

  it.each([
    [{ object: "chat.completion", error: null }],
    [{ object: "response", error: { message: "m" } }],
    [{ id: "x" }],
    [["error"]],
    ["error"],
    [null],
    [7],
  ])("like %j is not an error", (output) => {
    expect(errorIn(output)).toBeUndefined();
  });
});

it("An error is written with every field of OpenAI's errors", () => {
  const error = { status: 400, message: "m", type: errorType(400), param: null, code: "C" };
  expect(JSON.parse(errorText(error))).toEqual({
    error: { message: "m", type: "invalid_request_error", param: null, code: "C" },
  });
  expect([401, 403, 404, 429, 503].map(errorType)).toEqual([
    "authentication_error",
    "permission_error",
    "invalid_request_error",
    "rate_limit_error",
    "server_error",
  ]);
});

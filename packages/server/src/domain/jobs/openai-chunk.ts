import { isObject } from "./openai-error.js";

/**
 * Turns a finished chat completion into a single stream chunk with the message as its `delta`: streaming clients read
 * nothing else. Undefined if it is not a chat completion.
 */
export function chunkOfCompletion(completion: unknown): object | undefined {
  if (!isObject(completion) || completion.object !== "chat.completion") return undefined;
  const choices = Array.isArray(completion.choices) ? completion.choices : [];
  return { ...completion, object: "chat.completion.chunk", choices: choices.map(choiceOf) };
}

function choiceOf(choice: unknown): unknown {
  if (!isObject(choice)) return choice;
  const { message, ...rest } = choice;
  return { ...rest, delta: isObject(message) ? deltaOf(message) : {} };
}

/** In a stream, each tool call must carry its index. */
function deltaOf(message: Record<string, unknown>): object {
  const calls = message.tool_calls;
  if (!Array.isArray(calls)) return message;
  return { ...message, tool_calls: calls.map((call, index) => (isObject(call) ? { index, ...call } : call)) };
}

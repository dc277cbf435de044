import { isObject } from "./openai-error.js";

/**
 * A finished chat completion as the one chunk of a stream: what was a message is the difference to nothing. Clients that
 * stream read `delta` alone. Undefined where it is something else.
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

/** In a stream each call of a tool says which one it is. */
function deltaOf(message: Record<string, unknown>): object {
  const calls = message.tool_calls;
  if (!Array.isArray(calls)) return message;
  return { ...message, tool_calls: calls.map((call, index) => (isObject(call) ? { index, ...call } : call)) };
}

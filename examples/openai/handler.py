"""Implements OpenAI's API like the well-known vLLM workers, with the stock worker package.

Each job's input is {"openai_route": "/v1/chat/completions", "openai_input": {the request's body}}. The handler is a
generator: a streamed answer is text pieces of server-sent events (or objects, with RAW_OPENAI_OUTPUT=0), and any other
answer is one object. An error is yielded as {"error": {...}}: the stock package makes its text the job's error.
"""

import asyncio
import base64
import json
import os
import struct
import time
import uuid

import runpod

from model import Model, words_of

RAW = os.environ.get("RAW_OPENAI_OUTPUT", "1") == "1"
# Raw text is yielded in pieces of this many characters: it does not matter where they are cut.
CUT = int(os.environ.get("CUT", "0"))
TOKEN_SECONDS = float(os.environ.get("TOKEN_SECONDS", "0.02"))
DEFAULT_TOKENS = 60

# A real model takes minutes to load. Meanwhile its worker neither pings nor asks for jobs.
time.sleep(float(os.environ.get("LOAD_SECONDS", "0")))
model = Model()


class Wrong(Exception):
    def __init__(self, message, kind="BadRequestError", code=400):
        super().__init__(message)
        self.said = {"object": "error", "message": message, "type": kind, "param": None, "code": code}


async def handler(job):
    route = job["input"].get("openai_route")
    body = job["input"].get("openai_input") or {}
    try:
        if route == "/v1/models":
            yield {"object": "list", "data": [model_card()]}
        elif route == f"/v1/models/{model.name}":
            yield model_card()
        elif route == "/v1/embeddings":
            yield embeddings(body)
        elif route in ("/v1/chat/completions", "/v1/completions"):
            async for piece in completion(body, is_chat=route == "/v1/chat/completions"):
                yield piece
        else:
            raise Wrong(f"This worker has no {route}.", "NotFoundError", 404)
    except Wrong as wrong:
        yield {"error": wrong.said}


def model_card():
    return {"id": model.name, "object": "model", "created": 1735689600, "owned_by": "millrace"}


def check_model(body):
    if body.get("model") not in (None, model.name):
        raise Wrong(f"The model '{body['model']}' doesn't exist; there is '{model.name}'.", "NotFoundError", 404)


def embeddings(body):
    check_model(body)
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise Wrong("'input' must be a text or a list of texts.")
    vectors = [model.embed(text) for text in texts]
    if body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() for vector in vectors]
    count = sum(len(words_of(text)) for text in texts)
    return {
        "object": "list",
        "model": model.name,
        "data": [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)],
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


async def completion(body, is_chat):
    check_model(body)
    prompt = prompt_of(body, is_chat)
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_TOKENS
    if not isinstance(limit, int) or not 1 <= limit <= 4096:
        raise Wrong("'max_tokens' must be a whole number from 1 to 4096; it can't be anything else.")
    head = {"id": f"cmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model.name}
    temperature = body.get("temperature")
    tokens = model.generate(prompt, limit, 1.0 if temperature is None else temperature, body.get("seed"))
    if body.get("stream"):
        async for piece in streamed(body, head, tokens, limit, len(words_of(prompt)), is_chat):
            yield piece
    else:
        made = [token async for token in paced(tokens)]
        yield whole(head, made, limit, len(words_of(prompt)), is_chat)


def prompt_of(body, is_chat):
    if not is_chat:
        prompt = body.get("prompt")
        if not isinstance(prompt, str):
            raise Wrong("'prompt' must be a text.")
        return prompt
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Wrong("'messages' must be a list of messages.")
    content = messages[-1].get("content") if isinstance(messages[-1], dict) else None
    if isinstance(content, list):
        content = " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


async def paced(tokens):
    for token in tokens:
        await asyncio.sleep(TOKEN_SECONDS)
        yield token


def reason(made, limit):
    return "length" if made >= limit else "stop"


def usage(asked, made):
    return {"prompt_tokens": asked, "completion_tokens": made, "total_tokens": asked + made}


def whole(head, made, limit, asked, is_chat):
    text = "".join(made).strip()
    said = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
    choice = {"index": 0, **said, "logprobs": None, "finish_reason": reason(len(made), limit)}
    kind = "chat.completion" if is_chat else "text_completion"
    return {**head, "object": kind, "choices": [choice], "usage": usage(asked, len(made))}


async def streamed(body, head, tokens, limit, asked, is_chat):
    kind = "chat.completion.chunk" if is_chat else "text_completion"

    def event(text, finish=None, role=None):
        delta = {**({"role": role} if role else {}), **({} if text is None else {"content": text})}
        said = {"delta": delta} if is_chat else {"text": text or ""}
        return {**head, "object": kind, "choices": [{"index": 0, **said, "finish_reason": finish}]}

    made = 0
    if is_chat:
        for piece in pieces(event("", role="assistant")):
            yield piece
    async for token in paced(tokens):
        made += 1
        for piece in pieces(event(token)):
            yield piece
    for piece in pieces(event(None, finish=reason(made, limit))):
        yield piece
    if (body.get("stream_options") or {}).get("include_usage"):
        for piece in pieces({**head, "object": kind, "choices": [], "usage": usage(asked, made)}):
            yield piece
    for piece in pieces(None):
        yield piece


def pieces(event):
    """The pieces of an event; None stands for the end of the stream."""
    if not RAW:
        return [] if event is None else [event]
    text = f"data: {'[DONE]' if event is None else json.dumps(event)}\n\n"
    return [text] if CUT == 0 else [text[at : at + CUT] for at in range(0, len(text), CUT)]


if __name__ == "__main__":
    runpod.serverless.start(
        {"handler": handler, "return_aggregate_stream": True, "concurrency_modifier": lambda current: 8}
    )

"""OpenAI's own Python client: one scenario per run, its findings as one line of JSON."""

import asyncio
import json
import os
import sys

import openai

MODEL = "tiny-miller"
ASK = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Tell me about the miller"}],
    "max_tokens": 12,
    "seed": 7,
}


def text_of(stream):
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def models(client):
    return {"list": [found.id for found in client.models.list()], "one": client.models.retrieve(MODEL).object}


def chat(client):
    whole = client.chat.completions.create(**ASK)
    stream = client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    return {
        "whole": whole.choices[0].message.content,
        "finish": whole.choices[0].finish_reason,
        "streamed": text_of(chunks).strip(),
        "usages": [whole.usage.model_dump(exclude_none=True), chunks[-1].usage.model_dump(exclude_none=True)],
    }


def completion(client):
    asked = {"model": MODEL, "prompt": "When the water", "max_tokens": 9, "seed": 3}
    whole = client.completions.create(**asked).choices[0].text
    streamed = "".join(chunk.choices[0].text for chunk in client.completions.create(**asked, stream=True))
    return {"whole": whole, "streamed": streamed.strip()}


def embeddings(client):
    found = client.embeddings.create(model=MODEL, input=["the wheel", "the mill"])
    plain = client.embeddings.create(model=MODEL, input=["the wheel", "the mill"], encoding_format="float")
    pairs = zip(found.data[0].embedding, plain.data[0].embedding)
    return {"sizes": [len(each.embedding) for each in found.data], "alike": all(abs(a - b) < 1e-5 for a, b in pairs)}


def refused(deed):
    try:
        deed()
    except openai.APIError as error:
        return {
            "kind": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": error.code,
            "type": error.type,
            "message": error.body.get("message") if isinstance(error.body, dict) else None,
        }
    return None


def errors(client):
    def ask(**more):
        return refused(lambda: list(client.chat.completions.create(**{**ASK, **more})))

    return {
        "whole": ask(model="o'1"),
        "streamed": ask(model="o'1", stream=True),
        "bad": ask(messages=[]),
        "key": refused(lambda: client.with_options(api_key="mr_wrong").models.list()),
    }


def say(client, text, **more):
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **more)


def failing(client):
    texts = []

    def read():
        for chunk in say(client, "fail", stream=True):
            texts.append(chunk.choices[0].delta.content)

    return {"error": refused(read), "texts": texts}


def timed_out(client):
    return refused(lambda: say(client.with_options(timeout=3), "hang"))


def left(client):
    with say(client, "hang", stream=True) as stream:
        for chunk in stream:
            return chunk.choices[0].delta.content


def quiet(client):
    return text_of(say(client, "wait 5", stream=True))


def complete(client):
    """Reads to the end and closes at once: the worker may not have reported its result yet."""
    return [text_of(client.chat.completions.create(**ASK, stream=True)) != "" for _ in range(8)]


def in_asyncio(_):
    async def run():
        async with openai.AsyncOpenAI(base_url=sys.argv[2], api_key=os.environ["CLIENT_KEY"], max_retries=0) as client:

            async def one(seed):
                stream = await client.chat.completions.create(**{**ASK, "seed": seed}, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

            return await asyncio.gather(*(one(seed) for seed in (1, 1, 2)))

    return asyncio.run(run())


client = openai.OpenAI(base_url=sys.argv[2], api_key=os.environ["CLIENT_KEY"], max_retries=0)
print(json.dumps(globals()[sys.argv[1]](client)))

"""An OpenAI-compatible worker that fails in the way that the last message names."""

import asyncio
import json
import os

import runpod


def event(text):
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"


async def handler(job):
    command, _, argument = job["input"]["openai_input"]["messages"][-1]["content"].partition(" ")
    if command == "wait":
        await asyncio.sleep(float(argument))
    yield event("one")
    if command == "fail":
        yield event("two") + event("lost")[:20]
        yield {"error": {"object": "error", "message": "it's over", "type": "InternalError", "param": None, "code": 507}}
    if command == "die":
        await asyncio.sleep(0.5)
        os.kill(os.getpid(), 9)
    if command == "hang":
        with open(os.environ["NOTES"], "a") as notes:
            notes.write("hangs\n")
        await asyncio.sleep(600)
    yield event("two") + "data: [DONE]\n\n"


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: 4})

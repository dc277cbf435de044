"""Each call of langchain-runpod's two models once, with its text, as one JSON object."""

import asyncio
import json
import os
import sys

from findings import attempt_async, found
from langchain_runpod import ChatRunPod, RunPod

where = {"endpoint_id": sys.argv[1], "api_key": os.environ["CLIENT_KEY"], "api_base": os.environ["BASE"]}


def text_of(said):
    return said if isinstance(said, str) else said.content


async def every_call(name, model):
    async def invoke():
        return text_of(model.invoke("mill"))

    async def ainvoke():
        return text_of(await model.ainvoke("mill"))

    async def stream():
        return "".join(text_of(part) for part in model.stream("mill"))

    async def astream():
        return "".join([text_of(part) async for part in model.astream("mill")])

    for call in (invoke, ainvoke, stream, astream):
        await attempt_async(f"{name}.{call.__name__}", call)


async def main():
    await every_call("RunPod", RunPod(**where))
    await every_call("ChatRunPod", ChatRunPod(**where))


asyncio.run(main())
print(json.dumps(found))

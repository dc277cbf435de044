"""An async generator whose chunks are its output as well."""

import asyncio

import runpod


async def handler(job):
    for value in job["input"]["values"]:
        await asyncio.sleep(job["input"].get("pause", 0))
        yield value


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})

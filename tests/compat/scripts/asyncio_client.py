"""The stock asyncio client: one scenario per run, its findings as one line of JSON."""

import asyncio
import json
import os
import sys

import aiohttp
import runpod
from runpod import AsyncioEndpoint

runpod.api_key = os.environ["CLIENT_KEY"]


async def run(endpoint):
    job = await endpoint.run({"do": "echo", "text": "wörd"})
    early = await job.status()
    return {"id": job.job_id, "early": early, "output": await job.output(timeout=40), "late": await job.status()}


async def stream(endpoint):
    job = await endpoint.run({"values": ["one", 2, {"three": 3}], "count": 50})
    return {"chunks": [chunk async for chunk in job.stream()], "status": await job.status()}


async def cancel(endpoint):
    job = await endpoint.run({"seconds": 60})
    for _ in range(400):
        if await job.status() == "IN_PROGRESS":
            break
        await asyncio.sleep(0.1)
    return {"id": job.job_id, "reply": await job.cancel(), "status": await job.status()}


async def health_and_purge(endpoint):
    jobs = await asyncio.gather(*(endpoint.run({"n": number}) for number in range(5)))
    before = await endpoint.health()
    purged = await endpoint.purge_queue()
    states = [await job.status() for job in jobs]
    return {"before": before, "purged": purged, "after": await endpoint.health(), "states": states}


async def main():
    async with aiohttp.ClientSession() as session:
        return await globals()[sys.argv[1]](AsyncioEndpoint(sys.argv[2], session))


print(json.dumps(asyncio.run(main())))

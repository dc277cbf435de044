"""Each call of the stock package's clients once, with its result, as one JSON object."""

import asyncio
import json
import os
import sys

import aiohttp
import runpod
from findings import attempt, attempt_async, found

runpod.api_key = os.environ["CLIENT_KEY"]
plain, streaming, waiting = sys.argv[1:]


def synchronous():
    endpoint = runpod.Endpoint(plain)
    job = endpoint.run({"input": {"do": "echo", "n": 1}})
    found["Endpoint.run"] = {"gave": job.job_id}
    attempt("Endpoint.run_sync", lambda: endpoint.run_sync({"input": {"do": "echo", "n": 2}}))
    attempt("Endpoint.health", endpoint.health)
    attempt("Job.output", lambda: job.output(timeout=40))
    attempt("Job.status", job.status)
    stream = runpod.Endpoint(streaming).run({"input": {"values": [1, 2]}})
    attempt("Job.stream", lambda: list(stream.stream()))
    idle = runpod.Endpoint(waiting)
    attempt("Job.cancel", idle.run({"input": {"n": 3}}).cancel)
    idle.run({"input": {"n": 4}})
    attempt("Endpoint.purge_queue", idle.purge_queue)


async def asynchronous():
    async with aiohttp.ClientSession() as session:
        endpoint = runpod.AsyncioEndpoint(plain, session)
        job = await endpoint.run({"do": "echo", "n": 5})
        found["AsyncioEndpoint.run"] = {"gave": job.job_id}
        await attempt_async("AsyncioEndpoint.health", endpoint.health)
        await attempt_async("AsyncioJob.output", lambda: job.output(timeout=40))
        await attempt_async("AsyncioJob.status", job.status)
        stream = await runpod.AsyncioEndpoint(streaming, session).run({"values": [3, 4]})

        async def chunks():
            return [chunk async for chunk in stream.stream()]

        await attempt_async("AsyncioJob.stream", chunks)
        idle = runpod.AsyncioEndpoint(waiting, session)
        await attempt_async("AsyncioJob.cancel", (await idle.run({"n": 6})).cancel)
        await idle.run({"n": 7})
        await attempt_async("AsyncioEndpoint.purge_queue", idle.purge_queue)


synchronous()
asyncio.run(asynchronous())
print(json.dumps(found))

"""What the stock Python package, and with version 2 flash, may do with a key: each call's result, as one JSON object."""

import asyncio
import json
import os
import sys
import warnings

import runpod
from findings import attempt, attempt_async, found

warnings.simplefilter("ignore")
key, (endpoint, template, pod) = os.environ["CLIENT_KEY"], sys.argv[1:]
runpod.api_key = key


async def flash():
    from runpod_flash.core.api.runpod import RunpodGraphQLClient, RunpodRestClient

    async with RunpodGraphQLClient() as client:
        await attempt_async("flash get_template", lambda: client.get_template(template))
        change = {"id": endpoint, "name": "changed", "templateId": template, "gpuIds": "AMPERE_24"}
        await attempt_async("flash save_endpoint", lambda: client.save_endpoint(change))
    async with RunpodRestClient() as client:
        await attempt_async("flash list_network_volumes", client.list_network_volumes)


attempt("health", lambda: runpod.Endpoint(endpoint).health())
attempt("run_sync", lambda: runpod.Endpoint(endpoint).run_sync({"n": 4}, timeout=30))
attempt("get_endpoints", lambda: [each["id"] for each in runpod.get_endpoints()])
attempt("get_pods", lambda: [each["id"] for each in runpod.get_pods()])
attempt("create_template", lambda: runpod.create_template("more", "registry.example/image:1", is_serverless=True))
attempt("stop_pod", lambda: runpod.stop_pod(pod))
if runpod.__version__.startswith("2."):
    asyncio.run(flash())
print("\n" + json.dumps(found))

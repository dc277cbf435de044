"""Each management call of the flash package once, with its result, as one JSON object."""

import asyncio
import datetime
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
folder, key = sys.argv[1], os.environ["RUNPOD_API_KEY"]
os.chdir(folder)  # it keeps its notes in the folder that it runs in

import runpod_flash as flash  # noqa: E402
from findings import attempt_async as attempt, found  # noqa: E402
from runpod_flash.core.api.runpod import RunpodGraphQLClient, RunpodRestClient  # noqa: E402
from runpod_flash.core.resources.request_logs import QBRequestLogFetcher  # noqa: E402


def shown(resource):
    return {"id": resource.id, "templateId": getattr(resource, "templateId", None)}


async def deployed(resource):
    return shown(await resource.deploy())


async def undeployed(name):
    manager = flash.ResourceManager()
    (tracked,) = [each for each, resource in manager.list_all_resources().items() if resource.name.startswith(name)]
    result = await manager.undeploy_resource(tracked)
    if not result["success"]:
        raise RuntimeError(result["message"])
    return result


async def logs_of(endpoint, job):
    fetcher = QBRequestLogFetcher(start_time=datetime.datetime.now(datetime.timezone.utc))
    batch = await fetcher.fetch_logs(
        endpoint_id=endpoint,
        request_id=job,
        status_api_key=key,
        pod_logs_api_key=key,
        status_api_key_fallback=key,
    )
    return {"worker": batch.worker_id, "lines": batch.lines}


async def resources():
    await attempt(
        "NetworkVolume.deploy",
        lambda: deployed(flash.NetworkVolume(name="by resource", size=10, datacenter=flash.DataCenter.EU_RO_1)),
    )
    queue = flash.ServerlessEndpoint(
        name="queue", imageName=folder, gpus=[flash.GpuGroup.AMPERE_24], workersMin=1, workersMax=1
    )
    await attempt("ServerlessEndpoint.deploy", lambda: deployed(queue))

    async def ran():
        return (await queue.runsync({"input": {"n": 1}})).model_dump(mode="json")

    job = await attempt("ServerlessEndpoint.runsync", ran)
    await attempt("fetch_logs", lambda: logs_of(queue.id, job["id"]))
    small = flash.CpuServerlessEndpoint(
        name="small", imageName="registry.example/image:1", instanceIds=[flash.CpuInstanceType.CPU3G_2_8], workersMax=1
    )
    await attempt("CpuServerlessEndpoint.deploy", lambda: deployed(small))
    await attempt("ServerlessEndpoint.undeploy", lambda: undeployed("queue"))
    await attempt("CpuServerlessEndpoint.undeploy", lambda: undeployed("small"))


async def graphql(client):
    endpoint = await attempt(
        "save_endpoint",
        lambda: client.save_endpoint(
            {
                "name": "by hand",
                "type": "QB",
                "template": {"name": "by hand", "imageName": "registry.example/image:1", "env": [{"key": "A", "value": "1"}]},
                "gpuIds": "AMPERE_24,-NVIDIA L4",
                "locations": "EU-RO-1",
                "workersMin": 0,
                "workersMax": 1,
                "scalerType": "QUEUE_DELAY",
                "scalerValue": 4,
                "gpuCount": 1,
                "minCudaVersion": "12.8",
            }
        ),
    )
    template = await attempt("get_template", lambda: client.get_template(endpoint["templateId"]))
    changed = {**template, "env": [{"key": "B", "value": "2"}]}
    await attempt("update_template", lambda: client.update_template(changed))
    await attempt("endpoint_exists", lambda: client.endpoint_exists(endpoint["id"]))
    await attempt("delete_endpoint", lambda: client.delete_endpoint(endpoint["id"]))
    found["exists after"] = {"gave": await client.endpoint_exists(endpoint["id"])}
    for call, words in {
        "get_gpu_lowest_price_stock_status": ("NVIDIA L4", 1, "EU-RO-1"),
        "get_cpu_specific_stock_status": ("cpu3g", "cpu3g-2-8", "EU-RO-1"),
        "list_flash_apps": (),
        "get_flash_app": ("x",),
        "get_flash_app_by_name": ("x",),
        "get_flash_environment": ({"flashEnvironmentId": "x"},),
        "get_flash_environment_by_name": ({"flashAppId": "x", "name": "y"},),
        "create_flash_app": ({"name": "x"},),
        "create_flash_environment": ({"flashAppId": "x", "name": "y"},),
        "get_flash_build": ("x",),
        "list_flash_builds_by_app_id": ("x",),
        "list_flash_environments_by_app_id": ("x",),
        "delete_flash_app": ("x",),
        "delete_flash_environment": ("x",),
        "prepare_artifact_upload": ({"flashAppId": "x", "tarballSize": 1},),
        "finalize_artifact_upload": ({"flashAppId": "x", "objectKey": "y"},),
        "update_build_manifest": ("x", {}),
        "deploy_build_to_environment": ({"flashEnvironmentId": "x", "flashBuildId": "y"},),
        "create_flash_auth_request": (),
        "get_flash_auth_request_status": ("x",),
    }.items():
        await attempt(call, lambda: getattr(client, call)(*words))


async def main():
    await resources()
    async with RunpodGraphQLClient() as client:
        await graphql(client)
    async with RunpodRestClient() as client:
        volume = {"name": "by hand", "size": 10, "dataCenterId": "EU-RO-1"}
        await attempt("create_network_volume", lambda: client.create_network_volume(volume))
        await attempt("list_network_volumes", client.list_network_volumes)


asyncio.run(main())
print("\n" + json.dumps(found))

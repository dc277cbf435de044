"""The stock management functions: one scenario per run, its findings as one line of JSON."""

import json
import os
import sys
import uuid

import runpod
from runpod import error
from runpod.api.graphql import run_graphql_query

runpod.api_key = os.environ["CLIENT_KEY"]


def name():
    return f"made-by-python-{uuid.uuid4().hex[:8]}"


def template(folder, python):
    return runpod.create_template(
        name=name(),
        image_name=folder,
        docker_start_cmd=f'{python} -u "handler.py" "two words"',
        container_disk_in_gb=5,
        env={"NOTES": f"{folder}/notes", "FOLDER": folder, "GREETING": "hello there"},
        is_serverless=True,
    )


def deploy_and_run(folder, python):
    made = template(folder, python)
    endpoint = runpod.create_endpoint(name(), made["id"], workers_max=1, idle_timeout=10, flashboot=True)
    output = runpod.Endpoint(endpoint["id"]).run_sync({"do": "environment", "names": ["GREETING"], "words": True})
    return {"template": made, "endpoint": endpoint, "output": output}


def list_and_retemplate(folder, python):
    first, second = template(folder, python), template(folder, python)
    plain = runpod.create_endpoint(name(), first["id"], workers_max=0)
    set_up = runpod.create_endpoint(
        name(),
        first["id"],
        gpu_ids="ADA_24",
        locations="CZ,FR",
        idle_timeout=30,
        scaler_type="REQUEST_COUNT",
        scaler_value=2,
        workers_max=0,
    )
    changed = runpod.update_endpoint_template(plain["id"], second["id"])
    found = {endpoint["id"]: endpoint for endpoint in runpod.get_endpoints()}
    return {
        "first": first["id"],
        "second": second["id"],
        "changed": changed,
        "plain": found[plain["id"]],
        "set_up": found[set_up["id"]],
    }


def modify_and_delete(folder, python):
    made = template(folder, python)
    endpoint = runpod.create_endpoint(name(), made["id"], workers_max=2, idle_timeout=7)
    fields = f'id: "{endpoint["id"]}", gpuIds: "AMPERE_24", name: "renamed", templateId: "{made["id"]}"'
    modify = f"mutation {{ saveEndpoint(input: {{ {fields} }}) {{ id gpuIds name idleTimeout workersMax }} }}"
    modified = run_graphql_query(modify)["data"]["saveEndpoint"]
    deleted = run_graphql_query(f'mutation {{ deleteEndpoint(id: "{endpoint["id"]}") }}')
    listed = [each["id"] for each in runpod.get_endpoints()]
    return {"id": endpoint["id"], "modified": modified, "deleted": deleted, "listed": endpoint["id"] in listed}


def registry_auths(folder, python):
    auth_name = name()
    made = runpod.create_container_registry_auth(auth_name, "someone", "first word")
    updated = runpod.update_container_registry_auth(made["id"], "someone else", "second word")
    private = runpod.create_template(name(), "registry.example/image:1", registry_auth_id=made["id"])
    try:
        runpod.delete_container_registry_auth(made["id"])
        in_use = None
    except error.QueryError as refusal:
        in_use = str(refusal)
    unused = runpod.create_container_registry_auth(name(), "someone", "word")
    deleted = runpod.delete_container_registry_auth(unused["id"])
    return {
        "name": auth_name,
        "made": made,
        "updated": updated,
        "template": private["id"],
        "in_use": in_use,
        "deleted": deleted,
    }


def pods(folder, python):
    made = runpod.create_pod(
        name(),
        folder,
        "NVIDIA L4",
        cloud_type="ALL",
        docker_args=f"{python} -c 'import time; time.sleep(600)'",
        volume_in_gb=1,
        container_disk_in_gb=2,
        ports="8888/http",
        env={"GREETING": "hello there"},
    )
    listed = [pod["id"] for pod in runpod.get_pods()]
    stopped = runpod.stop_pod(made["id"])
    resumed = runpod.resume_pod(made["id"], 1)
    shown = runpod.get_pod(made["id"])
    runpod.terminate_pod(made["id"])
    left = [pod["id"] for pod in runpod.get_pods()]
    return {"made": made, "listed": listed, "stopped": stopped, "resumed": resumed, "shown": shown, "left": left}


def refusals(folder, python):
    found = {}
    try:
        runpod.create_endpoint(name(), "nosuchtemplate", workers_max=0)
    except error.QueryError as refusal:
        found["unknown template"] = str(refusal)
    try:
        runpod.create_endpoint(name(), template(folder, python)["id"], gpu_ids="NO_SUCH_TIER", workers_max=0)
    except error.QueryError as refusal:
        found["unknown tier"] = str(refusal)
    try:
        run_graphql_query("query { myself { endpoints { id } } }", api_key="nobody's")
    except error.AuthenticationError:
        found["wrong key"] = "AuthenticationError"
    return found


print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))

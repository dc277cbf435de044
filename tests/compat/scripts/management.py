"""Each management function of the stock Python package once, with its result, as one JSON object."""

import json
import os
import sys

import runpod
from findings import attempt, found

runpod.api_key = os.environ["CLIENT_KEY"]
folder, python = sys.argv[1:]


def main():
    public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExamp tests"
    attempt("update_user_settings", lambda: runpod.update_user_settings(public_key))
    attempt("get_user", runpod.get_user)
    attempt("get_gpus", runpod.get_gpus)
    attempt("get_gpu", lambda: runpod.get_gpu("NVIDIA L4"))

    auth = attempt("create_container_registry_auth", lambda: runpod.create_container_registry_auth("r", "user", "word"))
    attempt(
        "update_container_registry_auth",
        lambda: runpod.update_container_registry_auth(auth["id"], "other user", "other word"),
    )
    attempt("delete_container_registry_auth", lambda: runpod.delete_container_registry_auth(auth["id"]))

    start = f'{python} -u "handler.py"'
    env = {"NOTES": f"{folder}/notes", "FOLDER": folder}
    template = attempt(
        "create_template",
        lambda: runpod.create_template(f"t {runpod.__version__}", folder, docker_start_cmd=start, env=env, is_serverless=True),
    )
    other = runpod.create_template(f"other {runpod.__version__}", "registry.example/image:2", is_serverless=True, container_disk_in_gb=7)
    endpoint = attempt(
        "create_endpoint",
        lambda: runpod.create_endpoint(
            "e",
            template["id"],
            gpu_ids="AMPERE_24,-NVIDIA L4",
            locations="EU-RO-1",
            idle_timeout=7,
            scaler_value=2,
            workers_max=1,
            flashboot=True,
            allowed_cuda_versions="12.8,12.9",
        ),
    )
    found["run_sync"] = {"gave": runpod.Endpoint(endpoint["id"]).run_sync({"do": "echo", "n": 1}, timeout=60)}
    attempt("get_endpoints", runpod.get_endpoints)
    attempt("update_endpoint_template", lambda: runpod.update_endpoint_template(endpoint["id"], other["id"]))

    pod = attempt(
        "create_pod",
        lambda: runpod.create_pod(
            "p",
            folder,
            "NVIDIA L4",
            docker_args=f"{python} -c 'import time; time.sleep(600)'",
            volume_in_gb=1,
            container_disk_in_gb=2,
            ports="8888/http,22/tcp",
            env={"A": "1"},
            allowed_cuda_versions=["12.8"],
        ),
    )
    attempt("get_pods", runpod.get_pods)
    attempt("get_pod", lambda: runpod.get_pod(pod["id"]))
    attempt("stop_pod", lambda: runpod.stop_pod(pod["id"]))
    # version 2 takes no number of GPUs
    count = [] if runpod.__version__.startswith("2.") else [1]
    attempt("resume_pod", lambda: runpod.resume_pod(pod["id"], *count))
    attempt("terminate_pod", lambda: runpod.terminate_pod(pod["id"]))
    found["left"] = [each["id"] for each in runpod.get_pods()]


main()
found["version"] = runpod.__version__
print(json.dumps(found))

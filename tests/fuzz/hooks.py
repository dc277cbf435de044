"""Adapts fuzzing to this service: operations to avoid, additional checks, and counts."""

import atexit
import collections
import itertools
import json
import os
import re
import time

import requests
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

tally = collections.defaultdict(collections.Counter)


# What later calls need: a deletion of one of these deletes one of its spares instead.
KEPT = {kept: itertools.cycle(spares) for kept, spares in json.loads(os.environ.get("FUZZ_KEPT", "{}")).items()}


# What belongs together, and the endpoint with a worker.
PAIRS = json.loads(os.environ.get("FUZZ_PAIRS", "{}"))
LIVE = json.loads(os.environ.get("FUZZ_LIVE", "{}"))
# The service really starts workers: of every endpoint this many at most.
WORKERS_MAX = 2
PATHLIKE = re.compile(r"^\s*[./~\\]")


def live_worker():
    """The id of a worker that lives now, idle if there is one; a worker that was stopped is soon replaced."""
    url = f"{LIVE['url']}/v1/endpoints/{LIVE['endpoint']}/workers"
    for _ in range(100):
        workers = requests.get(url, headers={"Authorization": f"Bearer {LIVE['key']}"}, timeout=10).json()
        for state in ("idle", "running"):
            for worker in workers:
                if worker["state"] == state:
                    return worker["id"]
        time.sleep(0.1)
    return LIVE["worker"]


def bound(body):
    """Keeps a body from starting many workers, and from running what happens to be in a directory of this machine."""
    for outer, names in ((body, ("workersMin", "workersMax")), (body.get("workers"), ("min", "max"))):
        if isinstance(outer, dict):
            for name in names:
                if isinstance(outer.get(name), int) and outer[name] > WORKERS_MAX:
                    outer[name] = WORKERS_MAX
    for name in ("imageName", "image"):
        if isinstance(body.get(name), str) and PATHLIKE.match(body[name]):
            body[name] = "registry.example/image"


def name_what_lives(case):
    """Lets paths name what belongs together, and a worker that lives; changes of the live endpoint change another one."""
    parameters = case.path_parameters
    if LIVE and parameters.get("workerId") == LIVE["worker"] and "endpointId" not in parameters:
        parameters["workerId"] = live_worker()
    for value in list(parameters.values()):
        if isinstance(value, str):
            parameters.update({name: other for name, other in PAIRS.get(value, {}).items() if name in parameters})
    is_change = case.method.upper() != "GET" and not case.path.endswith("/restart")
    if LIVE and is_change and parameters.get("endpointId") == LIVE["endpoint"]:
        parameters["endpointId"] = LIVE["instead"]


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.path_parameters, dict):
        name_what_lives(case)
    if isinstance(case.body, dict):
        bound(case.body)
    if case.method.upper() in ("DELETE", "POST") and isinstance(case.path_parameters, dict):
        is_deletion = case.method.upper() == "DELETE" or case.body == {"action": "terminate"}
        for name, value in case.path_parameters.items():
            if is_deletion and value in KEPT:
                case.path_parameters[name] = next(KEPT[value])
    # The service really calls a valid webhook: send it to the run's own receiver.
    if isinstance(case.body, dict) and str(case.body.get("webhook", "")).lower().startswith("http"):
        case.body["webhook"] = os.environ["FUZZ_WEBHOOK"]


@schemathesis.hook
def after_call(context, case, response):
    tally[case.operation.label][response.status_code] += 1


@atexit.register
def write_tally():
    with open(os.environ["FUZZ_TALLY"], "w") as file:
        json.dump(tally, file)


# Refusals that no schema expresses: they depend on stored data, on two fields at once, or on a rule in prose.
STATE_CODES = {"INVALID_STATE", "IN_USE", "IDEMPOTENCY_CONFLICT", "QUOTA_REACHED"}
BEYOND_SCHEMAS = re.compile(
    r"(workersMin|workers.min) \(\d+\) is above workers"
    r"|A volume can only grow"
    r"|There is no (network volume|template|container registry auth)"
    r"|Directories as images are turned off here"
    r"|'expiresAt' is over"
    r"|'(tail|limit|since|until|jobId|follow|format|state|before)' must be"
    r"|in (volumeMountPath|mounts.persistent.path) cannot hold a volume"
    r"|'cursor' must be the nextCursor of a reply"
    r"|is no name of a container image|A container registry auth needs"
    r"|Name the version by its number|Version \d+ is the current one"
    r"|in (gpuTypeIds|gpuTypeId|gpu.id) is not a GPU type known here"
    r"|in dataCenterId is not a data centre|'minCudaVersion' must be a version"
    r"|in (gpuIds|gpu) is neither a GPU tier nor a GPU type|'(gpuIds|gpu)' excludes every GPU type"
    r"|'args' may have 1000 characters at most"
    r"|in (locations|countryCodes) is neither one of|in gpu.excludedTypes is not a GPU type"
    r"|A pod needs 'imageName'|A pod('s volume)? can only grow|A CPU pod has no|This pod was made without"
    r"|A mount cannot be taken away|The network volume of a pod cannot be changed|Send either 'mounts"
    r"|'(stopAfter|terminateAfter|startTime|endTime)' must be a time|'startTime' must not be after"
    r"|Send either 'lastN'|in timeZone is not a time zone|A bill has \d+ buckets at most"
    r"|Send either 'gpu' or 'cpu'|There are no HIGH_PERFORMANCE volumes"
    r"|in (include|product|cloud|networkVolumeTypes|regions|compliance|globalNetwork) is not one of"
    r"|'(count|vcpuCount)' must be a whole number"
    r"|'workersMin' must not be more than 'workersMax'"
    r"|'place' is .*, and no cluster runs workers here|No cluster here has the pod class '"
)


@schemathesis.check
def accepts_what_is_valid(ctx, response, case):
    """Like positive_data_acceptance, but 400 may also mean a conflict with stored state (the contract has no 409)."""
    if response.status_code == 400:
        body = response.json()
        if body["code"] in STATE_CODES or BEYOND_SCHEMAS.search(body.get("error") or body["detail"]):
            return None
    return positive_data_acceptance(ctx, response, case)

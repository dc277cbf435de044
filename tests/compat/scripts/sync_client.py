"""The stock synchronous client: one scenario per run, its findings as one line of JSON."""

import json
import os
import sys
import time

import runpod

runpod.api_key = os.environ["CLIENT_KEY"]


def run(endpoint):
    job = endpoint.run({"input": {"do": "echo", "text": "wörd", "number": 1.5}})
    early = job.status()
    return {"id": job.job_id, "early": early, "output": job.output(timeout=40), "late": job.status()}


def run_bare(endpoint):
    return endpoint.run({"do": "echo", "bare": True}).output(timeout=40)


def run_sync(endpoint):
    return {
        "wrapped": endpoint.run_sync({"input": {"do": "echo", "n": 2}}),
        "bare": endpoint.run_sync({"do": "echo", "n": 3}),
        "none": endpoint.run_sync({"do": "none"}),
        "failed": endpoint.run_sync({"do": "fail", "text": "on purpose"}),
    }


def failed(endpoint):
    job = endpoint.run({"do": "fail", "text": "on purpose"})
    return {"output": job.output(timeout=40), "status": job.status()}


def empty(endpoint):
    return endpoint.run({}).status()


def stream(endpoint):
    job = endpoint.run({"values": ["one", 2, {"three": 3}, [4], None], "count": 200})
    return {"chunks": list(job.stream()), "status": job.status()}


def stream_failed(endpoint):
    job = endpoint.run({"values": ["one"], "fail": "half way"})
    return {"chunks": list(job.stream()), "status": job.status()}


def cancel(endpoint):
    job = endpoint.run({"seconds": 60})
    deadline = time.time() + 40
    while job.status() != "IN_PROGRESS" and time.time() < deadline:
        time.sleep(0.1)
    return {"id": job.job_id, "reply": job.cancel(), "again": job.cancel(), "status": job.status()}


def cancel_waiting(endpoint):
    job = endpoint.run({"n": 1})
    return {"before": job.status(), "reply": job.cancel(), "status": job.status(), "output": job.output()}


def health_and_purge(endpoint):
    jobs = [endpoint.run({"n": number}) for number in range(5)]
    before = endpoint.health()
    purged = endpoint.purge_queue()
    return {"before": before, "purged": purged, "after": endpoint.health(), "states": [job.status() for job in jobs]}


def wrong_key(endpoint):
    try:
        runpod.Endpoint(endpoint.endpoint_id, api_key="nobody's").run({"n": 1})
    except Exception as error:
        return {"type": type(error).__name__, "says_401": "401" in str(error)}


def unknown(_endpoint):
    try:
        runpod.Endpoint("nosuchendpoint").run({"n": 1})
    except Exception as error:
        return {"type": type(error).__name__, "status": error.response.status_code}


print(json.dumps(globals()[sys.argv[1]](runpod.Endpoint(sys.argv[2]))))

"""Adapts the fuzzing of GraphQL to this service: names that exist, a check, and counts."""

import atexit
import collections
import itertools
import json
import os
import re

import schemathesis
from hypothesis import strategies
from schemathesis.graphql import nodes

tally = collections.defaultdict(collections.Counter)
schemathesis.graphql.scalar("ModelVersionStatus", strategies.just("READY").map(nodes.String))

# What exists, by the argument or field that names it, or by `operation.name` where that differs.
KNOWN = {name: itertools.cycle(values) for name, values in json.loads(os.environ["FUZZ_KNOWN"]).items()}
# Of each name every fifth value stays as it was made up.
turns = collections.defaultdict(lambda: itertools.cycle([True, True, False, True, True]))
# Optional fields without which a mutation does nothing: they are added to most inputs.
POD = ["imageName"]
NEEDED = {
    "saveTemplate": ["name", "imageName"],
    "saveEndpoint": ["name", "templateId", "gpuIds"],
    **dict.fromkeys(["podFindAndDeployOnDemand", "podRentInterruptable", "deployCpuPod"], POD),
}
TEXT = re.compile(r'(\w+): ("""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*")')
# The service really starts workers: few of them, and of nothing that happens to be in a directory of this machine.
WORKERS = re.compile(r"(workersM(?:in|ax)): (\d+)")
IMAGE = re.compile(r'imageName: "+\s*[./~\\](?:[^"\\]|\\.)*"+')


def bounded(found):
    return f"{found[1]}: {min(2, int(found[2]))}"


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.label.split(".")[1]

    def with_known(found):
        values = KNOWN.get(f"{operation}.{found[1]}") or KNOWN.get(found[1])
        return f"{found[1]}: {json.dumps(next(values))}" if values and next(turns[found[1]]) else found[0]

    case.body = WORKERS.sub(bounded, IMAGE.sub('imageName: "registry.example/image"', TEXT.sub(with_known, case.body)))
    missing = [field for field in NEEDED.get(operation, []) if f"{field}:" not in case.body]
    if missing and next(turns[operation]):
        added = " ".join(f"{field}: {json.dumps(next(KNOWN[field]))}" for field in missing)
        case.body = case.body.replace("input: {", f"input: {{ {added} ", 1)


@schemathesis.hook
def after_call(context, case, response):
    tally[case.operation.label][outcome_of(response)] += 1


def outcome_of(response):
    errors = response.json().get("errors") if response.status_code in (200, 400) else None
    return "OK" if response.status_code == 200 and not errors else (errors or [{}])[0].get("extensions", {}).get("code")


@atexit.register
def write_tally():
    with open(os.environ["FUZZ_TALLY"], "w") as file:
        json.dump(tally, file)


# Queries that fit the schema, and yet are larger than what is served.
TOO_LARGE = re.compile(r"nested too deep|selects more than|more than \d+ (lines|tokens)|Document contains more than")


@schemathesis.check
def is_answered(ctx, response, case):
    """A query that fits the schema is run, or refused in words; no query meets a mistake of ours."""
    assert response.status_code in (200, 400), f"status {response.status_code}"
    errors = response.json().get("errors")
    if response.status_code == 400 and case.meta.generation.mode.is_positive:
        assert TOO_LARGE.search(errors[0]["message"]), f"not run: {errors}"
    assert errors is None or errors, "an empty list of errors"
    for error in errors or []:
        assert error["message"] and error["extensions"]["code"] != "INTERNAL", f"our mistake: {errors}"

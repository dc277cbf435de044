"""The stock functions about GPU types: one scenario per run, its findings as one line of JSON."""

import json
import os
import sys

import runpod

runpod.api_key = os.environ["CLIENT_KEY"]


def types():
    return runpod.get_gpus()


def one(gpu_id, count):
    return runpod.get_gpu(gpu_id, int(count))


def unknown(gpu_id):
    try:
        return runpod.get_gpu(gpu_id)
    except ValueError as error:
        return str(error)


print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))

"""A worker that asks to be replaced after every job."""

import os

import runpod

runpod.serverless.start({"handler": lambda job: {"leader": os.getpid()}, "refresh_worker": True})

"""Returns its input, with the stock worker package."""

import runpod

runpod.serverless.start({"handler": lambda job: job["input"]})

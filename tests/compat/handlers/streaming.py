"""A generator: yields what its input lists, and what its input names."""

import time

import runpod


def handler(job):
    order = job["input"]
    for value in order.get("values", []):
        yield value
        time.sleep(order.get("pause", 0))
    for number in range(order.get("count", 0)):
        yield {"number": number, "padding": "x" * order.get("padding", 0)}
    if order.get("nan"):
        yield float("nan")
        yield "after"
    if "error" in order:
        yield {"error": order["error"]}
        yield "too late"
    if "fail" in order:
        raise ValueError(order["fail"])


runpod.serverless.start({"handler": handler})

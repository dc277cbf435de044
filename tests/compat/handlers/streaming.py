"""A generator: yields the values in its input, and other chunks that the input asks for."""

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

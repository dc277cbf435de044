"""An async handler that takes three jobs at a time."""

import asyncio
import os

import runpod

present = set()


def note(line):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        notes.write(line + "\n")


async def handler(job):
    order = job["input"]
    note(f"start {job['id']}")
    present.add(job["id"])
    most = 0
    try:
        for _ in range(order["ticks"]):
            most = max(most, len(present))
            if most >= order.get("enough", 99):
                await asyncio.sleep(0.5)
                break
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        note(f"CancelledError {job['id']}")
        raise
    finally:
        present.discard(job["id"])
    return {"most": most}


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: 3})

"""An async handler that records when it is stopped."""

import asyncio
import os

import runpod


def note(line):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        notes.write(line + "\n")


async def handler(job):
    seconds = job["input"].get("seconds", 0)
    note(f"start {job['id']}")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note(f"CancelledError {job['id']}")
        raise
    return {"slept": seconds}


runpod.serverless.start({"handler": handler})

"""Counts the words of a text, with the stock worker package."""

from collections import Counter

import runpod


def handler(job):
    words = job["input"].get("text", "").lower().split()
    if not words:
        # A returned "error" fails the job.
        return {"error": "input.text holds no words"}
    return {"words": len(words), "most_common": Counter(words).most_common(3)}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})

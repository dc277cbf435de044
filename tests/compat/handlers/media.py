"""A model of many kinds: whatever it is asked, it answers with a text, and with addresses of files."""

import os

import runpod


def handler(job):
    files = os.environ["FILES"]
    return {
        "text": "what was heard",
        "image_url": f"{files}/made.png",
        "audio_url": f"{files}/made.mp3",
        "video_url": f"{files}/made.mp4",
        "asked": job["input"].get("prompt"),
    }


runpod.serverless.start({"handler": handler})

"""A plain handler: runs the action that its input names."""

import multiprocessing
import os
import sys
import time

import runpod


def note(line):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        notes.write(line + "\n")


def wait_for(name):
    """Blocks, as a plain handler does, until the file is there."""
    deadline = time.time() + 60
    while not os.path.exists(os.path.join(os.environ["FOLDER"], name)):
        if time.time() > deadline:
            raise TimeoutError(name)
        time.sleep(0.05)


def fail(job):
    raise ValueError(job["input"]["text"])


def progress(job):
    runpod.serverless.progress_update(job, {"percent": 50})
    wait_for(job["input"]["file"])
    return "done"


def log(job):
    print("a printed line " + job["input"]["mark"], flush=True)
    runpod.RunPodLogger().info("a logged line " + job["input"]["mark"], job["id"])


def pids(_job):
    return {"leader": os.getpid(), "child": multiprocessing.active_children()[0].pid}


def first_blocks(job):
    """Records its process and blocks the first time; ends at once the second time."""
    name = os.path.join(os.environ["FOLDER"], "first")
    if os.path.exists(name):
        return "the second time"
    with open(name, "w", encoding="utf-8"):
        pass
    found = pids(job)
    note(f"{found['leader']} {found['child']}")
    time.sleep(90)
    return "the first time"


def die(_job):
    note("die")
    os._exit(7)


def unserialisable(_job):
    """Returns a set, then an object, then a set."""
    note("unserialisable")
    with open(os.environ["NOTES"], encoding="utf-8") as notes:
        return object() if len(notes.readlines()) == 2 else {"a set": {1, 2}}


def environment(job):
    found = {name: os.environ.get(name) for name in job["input"]["names"]}
    return {**found, "words": sys.argv[1:]} if job["input"].get("words") else found


DEEDS = {
    "echo": lambda job: job["input"],
    "value": lambda job: job["input"]["value"],
    "none": lambda job: None,
    "empty": lambda job: {},
    "fail": fail,
    "nan": lambda job: {"loss": float("nan")},
    "progress": progress,
    "log": log,
    "pids": pids,
    "first_blocks": first_blocks,
    "block": lambda job: wait_for("never"),
    "die": die,
    "unserialisable": unserialisable,
    "refresh": lambda job: {"refresh_worker": True, "kept": 1},
    "keys": lambda job: sorted(job),
    "long": lambda job: "x" * job["input"]["length"],
    "where": lambda job: {"executable": sys.executable, "home": os.environ["HOME"], "folder": os.getcwd()},
    "environment": environment,
}


def handler(job):
    return DEEDS[job["input"]["do"]](job)


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})

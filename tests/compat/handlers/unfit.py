"""A worker whose fitness check fails before it asks for a job."""

import runpod


@runpod.serverless.register_fitness_check
def disk_is_mounted():
    raise RuntimeError("no disk is mounted")


runpod.serverless.start({"handler": lambda job: None})

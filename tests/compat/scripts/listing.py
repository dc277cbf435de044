"""What the stock Python package shows of a user, as one JSON object."""

import json
import os

import runpod

runpod.api_key = os.environ["CLIENT_KEY"]
found = {
    "user": runpod.get_user()["id"],
    "endpoints": [each["id"] for each in runpod.get_endpoints()],
    "pods": [each["id"] for each in runpod.get_pods()],
}
print(json.dumps(found))

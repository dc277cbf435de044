"""A handler that can't be imported."""

import sys

print("loading the model", flush=True)
sys.stderr.write("still loading\n")
raise RuntimeError("the weights are not where they should be")

"""Guesses the language of a text, with the stock worker package."""

import runpod

# This runs once, while the container starts; every job finds it ready.
COMMON = {
    "de": set("der die das und ist nicht ein eine mit für auf den zu".split()),
    "en": set("the and is not a an with for on of to in that".split()),
    "fr": set("le la les et est ne pas un une avec pour sur des".split()),
}


def handler(job):
    words = job["input"].get("text", "").lower().split()
    if not words:
        # A returned "error" fails the job.
        return {"error": "input.text holds no words"}
    scores = {code: sum(word in common for word in words) for code, common in COMMON.items()}
    best = max(scores, key=scores.get)
    return {"language": best if scores[best] > 0 else None, "scores": scores}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})

"""An OpenAI-compatible worker whose handler never streams, whatever the request asks for."""

import runpod


def handler(job):
    body = job["input"]["openai_input"]
    text = body["messages"][-1]["content"]
    if text == "refuse":
        return {"error": {"message": "not that", "type": "BadRequestError", "param": "messages", "code": 422}}
    if text == "raise":
        raise ValueError("cannot answer that")
    message = {"role": "assistant", "content": f"You said: {text}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


runpod.serverless.start({"handler": handler})

import asyncio
import os
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import StreamingResponse



@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.ready = True  # set this after loading a model
    yield


app = FastAPI(lifespan=lifespan)
app.state.ready = False


@app.get("/ping")
async def ping() -> Response:
    # 204 while it loads, 200 once it accepts requests
    return Response(status_code=200 if app.state.ready else 204)


@app.post("/words")
async def words(body: dict) -> dict:
    return {"words": len(str(body.get("text", "")).split())}


@app.get("/count")
async def count(to: int = 3) -> StreamingResponse:
    async def events():
        for n in range(1, to + 1):
            yield f"data: {n}\n\n"
            await asyncio.sleep(0.1)

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    uvicorn.run(app, host="0.0.0.0", port=int(os.environ["PORT"]), timeout_graceful_shutdown=20)

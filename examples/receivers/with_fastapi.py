import os

import tidings
from fastapi import FastAPI, Request, Response

SECRET = os.environ["WEBHOOK_SECRET"]
seen: set[str] = set()  # in production a table of yours, with a unique column

app = FastAPI()


@app.post("/in")
async def receive(request: Request) -> Response:
    body = await request.body()
    try:
        tidings.verify(request.headers, body, SECRET)
    except tidings.SignatureRefused as refused:
        return Response(refused.what, status_code=401)
    if answer := tidings.answer_challenge(body, SECRET):
        return Response(answer, media_type="application/json")
    if (id := request.headers["webhook-id"]) not in seen:
        print("new:", request.headers["tidings-event-type"], body.decode(), flush=True)
        seen.add(id)
    return Response(status_code=204)

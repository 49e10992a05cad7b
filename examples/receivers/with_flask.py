import os

import tidings
from flask import Flask, Response, request

SECRET = os.environ["WEBHOOK_SECRET"]
seen: set[str] = set()  # in production a table of yours, with a unique column

app = Flask(__name__)


@app.post("/in")
def receive() -> Response:
    body = request.get_data()
    try:
        tidings.verify(request.headers, body, SECRET)
    except tidings.SignatureRefused as refused:
        return Response(refused.what, status=401)
    if answer := tidings.answer_challenge(body, SECRET):
        return Response(answer, mimetype="application/json")
    if (id := request.headers["webhook-id"]) not in seen:
        print("new:", request.headers["tidings-event-type"], body.decode(), flush=True)
        seen.add(id)
    return Response(status=204)

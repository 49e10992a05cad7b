import os
import sys

import django
import tidings
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

SECRET = os.environ["WEBHOOK_SECRET"]
seen: set[str] = set()  # in production a table of yours, with a unique column


@csrf_exempt  # it is the signature that says who sent it
@require_POST
def receive(request: HttpRequest) -> HttpResponse:
    try:
        tidings.verify(request.headers, request.body, SECRET)
    except tidings.SignatureRefused as refused:
        return HttpResponse(refused.what, status=401)
    if answer := tidings.answer_challenge(request.body, SECRET):
        return HttpResponse(answer, content_type="application/json")
    if (id := request.headers["webhook-id"]) not in seen:
        print("new:", request.headers["tidings-event-type"], request.body.decode(), flush=True)
        seen.add(id)
    return HttpResponse(status=204)


urlpatterns = [path("in", receive)]

if __name__ == "__main__":
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="only-for-a-trial")
    django.setup()
    execute_from_command_line(sys.argv)

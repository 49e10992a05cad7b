"""An order, the event about it and the mail that it needs are one transaction: Django's own, `transaction.atomic`."""

import json
from decimal import Decimal

import tidings
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from shop.models import Order


class Declined(Exception):
    pass


@csrf_exempt
@require_POST
@transaction.atomic
def place(request: HttpRequest) -> JsonResponse:
    new = json.loads(request.body)
    order = Order.objects.create(email=new["email"], total=Decimal(new["total"]))
    payload = {"order": order.id, "total": new["total"]}
    event = tidings.publish(connection, "order.placed", payload, external_id=f"order-{order.id}-placed")
    tidings.submit_task(connection, "EMAIL_SEND", f"order-{order.id}", {"to": order.email, "order": order.id})
    return JsonResponse({"order": order.id, "event": event.id}, status=201)


@csrf_exempt
@require_POST
def pay(request: HttpRequest, id: int) -> JsonResponse:
    try:
        with transaction.atomic():
            order = get_object_or_404(Order.objects.select_for_update(), id=id)
            order.paid = True
            order.save()
            event = tidings.publish(connection, "order.paid", {"order": id}, external_id=f"order-{id}-paid")
            if order.total > 1000:  # the bank declines: everything above is rolled back, and no event was ever there
                raise Declined
    except Declined:
        return JsonResponse({"detail": "declined"}, status=402)
    return JsonResponse({"order": id, "event": event.id})

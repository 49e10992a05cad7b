"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    email = models.CharField(max_length=200)
    total = models.DecimalField(max_digits=10, decimal_places=2)
    paid = models.BooleanField(default=False)

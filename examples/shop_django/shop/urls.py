"""Where the views are."""

from django.urls import path

from shop.views import pay, place

urlpatterns = [path("orders", place), path("orders/<int:id>/payment", pay)]

"""As little as a Django project needs, and its database from DATABASE_URL, of either engine."""

import os
from urllib.parse import unquote, urlsplit

_url = urlsplit(os.environ["DATABASE_URL"])
_is_postgresql = _url.scheme == "postgresql"

if not _is_postgresql:
    import pymysql

    pymysql.install_as_MySQLdb()  # or install mysqlclient

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql" if _is_postgresql else "django.db.backends.mysql",
        "NAME": _url.path.strip("/"),
        "HOST": _url.hostname,
        "PORT": _url.port,
        "USER": unquote(_url.username or ""),
        "PASSWORD": unquote(_url.password or ""),
    }
}
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
SECRET_KEY = "only-for-a-trial"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

"""No secret is seen in a repr or in a message."""

import copy
import pickle
from pathlib import Path

import pytest

from tests.settings.loading import loaded, problems_in_file, problems_of
from tidings.settings.secret import DatabaseUrl, Secret

SECRET = "hunter2"


def test_no_secret_is_in_the_repr_of_the_settings() -> None:
    url = f"postgresql://app:{SECRET}@db.example:5432/app?sslpassword={SECRET}"
    settings = loaded(
        {
            "TIDINGS_DATABASE_URL": url,
            "TIDINGS_DATABASE_URL_JOB_WORKER": url,
            "TIDINGS_ADMIN_KEY": SECRET,
            "TIDINGS_SECRET_KEYS": f"{SECRET},{SECRET}",
        }
    )
    assert SECRET not in repr(settings)
    assert "'postgresql://app:***@db.example:5432/app'" in repr(settings)
    assert settings.database.database_url == url


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("", ""),
        ("postgresql:///app?password=hunter2", "postgresql:///app"),
        ("mysql://app@db/app", "mysql://app@db/app"),
        ("mysql://app:hunter2@db", "mysql://app:***@db"),
        ("mysql://app:@hunter2/:x@db/app", "mysql://app:***@db/app"),
        ("mysql://app:hunter2", "mysql://***"),
        ("mysql://app:x@hunter2#@[::1]/app", "mysql://app:***@***"),
        ("hunter2", "***"),
    ],
)
def test_a_database_url_is_shown_without_password_and_parameters(url: str, masked: str) -> None:
    assert DatabaseUrl(url).masked == masked
    assert repr(DatabaseUrl(url)) == repr(masked)


@pytest.mark.parametrize(
    "name",
    ["DATABASE_URL", "DATABASE_URL_JOB_WORKER", "ADMIN_KEY", "SECRET_KEYS", "ADMIN_KYE", "SECRETS_KEY"],
)
def test_no_secret_is_in_a_message_about_a_bad_value_or_name(name: str) -> None:
    (problem,) = problems_of({f"TIDINGS_{name}": f"a {SECRET},, é"})
    assert SECRET not in problem


def test_no_secret_is_in_a_message_about_the_file(tmp_path: Path) -> None:
    toml = f'secret_keys = "{SECRET}"\n[server]\nadmin_key = ["{SECRET}"]\n[database.urls]\nx = "{SECRET}"'
    assert SECRET not in "".join(problems_in_file(tmp_path, toml))
    assert SECRET not in "".join(problems_in_file(tmp_path, f'[server]\nadmin_key = "{SECRET}'))


def test_a_secret_stays_one_when_copied_or_sent_to_another_process() -> None:
    for again in (copy.deepcopy(Secret(SECRET)), pickle.loads(pickle.dumps(Secret(SECRET)))):
        assert again == SECRET
        assert repr(again) == "'***'"

"""The list of codes is closed, the reference says the same, and a test yields each of them."""

import re
from pathlib import Path

import pytest

from tidings.courier import error_codes
from tidings.courier.error_codes import LEASE_EXPIRED, SITUATIONS, of_status

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "error-codes.md"


def test_the_reference_lists_each_code_with_its_situation_in_order() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [*SITUATIONS.items()]


def test_every_code_of_the_module_is_in_the_list() -> None:
    named = {value for name, value in vars(error_codes).items() if name.isupper() and isinstance(value, str)}
    assert named == set(SITUATIONS) - {"http_NNN"}


@pytest.mark.parametrize("code", sorted({*SITUATIONS} - {"http_NNN", LEASE_EXPIRED}))
def test_each_code_that_sending_can_yield_is_expected_by_a_test(code: str) -> None:
    texts = [
        path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py") if path.name != Path(__file__).name
    ]
    assert any(f'"{code}"' in text or code.upper() in text for text in texts)


@pytest.mark.parametrize(
    ("status", "code"),
    [(200, None), (204, None), (299, None), (199, "http_199"), (300, "http_300"), (304, "http_304"), (404, "http_404")],
)
def test_success_is_2xx_and_nothing_else(status: int, code: str | None) -> None:
    assert of_status(status) == code

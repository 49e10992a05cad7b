"""Challenges and their answers; the expected proofs are worked out here with nothing but the standard library."""

import base64
import hashlib
import hmac
import json

import pytest

import tidings
from tidings.decisions.verifying import (
    ALLOWANCES,
    LONGEST_ANSWER,
    answer_challenge,
    challenge_body,
    is_right_answer,
    outcome_of,
    proof_of,
    refuse_if_too_often,
    status_class,
)
from tidings.errors import LimitReached, SignatureRefused
from tidings.model.endpoint_check import CheckKind, CheckOutcome
from tidings.model.subscription import Verification

SECRET, OTHER = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"k", b"o"))
CHALLENGE = "Zm9vYmFyYmF6cXV4-_Zm9vYmFyYmF6cXV4Zm9vYmFy"
PROOF = base64.b64encode(hmac.new(b"k" * 32, f"verify.{CHALLENGE}".encode(), hashlib.sha256).digest()).decode()


def test_a_proof_is_the_hmac_of_the_challenge_under_the_secret() -> None:
    assert proof_of(CHALLENGE, SECRET) == PROOF


def test_a_receiver_answers_both_modes_at_once() -> None:
    answer = tidings.answer_challenge(challenge_body(7, CHALLENGE, 1_700_000_000), SECRET)
    assert json.loads(answer or "") == {"challenge": CHALLENGE, "proof": PROOF}
    for mode in (Verification.PROOF, Verification.ECHO):
        assert is_right_answer(mode, CHALLENGE, [SECRET], (answer or "").encode())


def test_a_receiver_without_a_secret_answers_the_echo_alone() -> None:
    answer = answer_challenge(challenge_body(7, CHALLENGE, 0)) or ""
    assert is_right_answer(Verification.ECHO, CHALLENGE, [], answer.encode())
    assert not is_right_answer(Verification.PROOF, CHALLENGE, [SECRET], answer.encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"type": "order.paid", "data": {"challenge": "aaaaaaaaaaaaaaaaaaaaaaaa"}}',
        b'{"type": "endpoint.verification"}',
        b'{"type": "endpoint.verification", "data": []}',
        b'{"type": "endpoint.verification", "data": {"challenge": 5}}',
        # The proof for it would be the signature of a message of the sender's choice.
        b'{"type": "endpoint.verification", "data": {"challenge": "1700000000.{\\"order\\": 1}"}}',
        b"[" * 100_000,
    ],
    ids=range(9),
)
def test_what_is_no_challenge_is_not_answered(body: bytes) -> None:
    assert answer_challenge(body, SECRET) is None


def test_a_proof_under_any_valid_secret_counts() -> None:
    answer = json.dumps({"proof": PROOF}).encode()
    assert is_right_answer(Verification.PROOF, CHALLENGE, [OTHER, SECRET], answer)
    assert not is_right_answer(Verification.PROOF, CHALLENGE, [OTHER], answer)
    assert not is_right_answer(Verification.PROOF, CHALLENGE, [], answer)


@pytest.mark.parametrize("answer", [CHALLENGE, f" {CHALLENGE}\r\n", json.dumps({"challenge": CHALLENGE, "more": 1})])
def test_an_echo_is_plain_or_json(answer: str) -> None:
    assert is_right_answer(Verification.ECHO, CHALLENGE, [SECRET], answer.encode())


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        (Verification.PROOF, CHALLENGE.encode()),
        (Verification.PROOF, json.dumps({"challenge": CHALLENGE}).encode()),
        (Verification.PROOF, PROOF.encode()),
        (Verification.PROOF, json.dumps({"proof": [PROOF]}).encode()),
        (Verification.PROOF, json.dumps({"proof": PROOF, "x": "x" * LONGEST_ANSWER}).encode()),
        (Verification.PROOF, b'{"proof": "\\ud800"}'),
        (Verification.ECHO, b""),
        (Verification.ECHO, CHALLENGE[:-1].encode()),
        (Verification.ECHO, json.dumps({"proof": PROOF}).encode()),
        (Verification.ECHO, CHALLENGE.encode() + b" " * LONGEST_ANSWER),
        (Verification.NONE, CHALLENGE.encode()),
    ],
    ids=range(11),
)
def test_everything_else_is_no_answer(mode: Verification, answer: bytes) -> None:
    assert not is_right_answer(mode, CHALLENGE, [SECRET], answer)


def test_a_secret_that_is_none_is_refused_without_being_quoted() -> None:
    with pytest.raises(SignatureRefused) as refused:
        proof_of(CHALLENGE, "whsec_!!")
    assert "!!" not in str(refused.value)


@pytest.mark.parametrize(
    ("error_code", "is_right", "told"),
    [
        (None, True, CheckOutcome.PASSED),
        (None, False, CheckOutcome.FAILED),
        ("timeout", False, CheckOutcome.TIMEOUT),
        ("blocked_address", False, CheckOutcome.BLOCKED),
        # Whether somebody listens there is not told.
        *((code, False, CheckOutcome.FAILED) for code in ("connect_error", "dns_error", "tls_error", "http_401")),
    ],
)
def test_of_a_call_no_more_is_told_than_this(error_code: str | None, is_right: bool, told: CheckOutcome) -> None:
    assert outcome_of(error_code, is_right) is told


def test_the_class_of_a_status_is_told_where_there_was_one() -> None:
    assert status_class(CheckOutcome.PASSED, None) == "2xx"
    assert status_class(CheckOutcome.FAILED, "http_503") == "5xx"
    assert status_class(CheckOutcome.TIMEOUT, "timeout") is None


@pytest.mark.parametrize("kind", CheckKind)
def test_a_subscription_and_a_host_are_called_so_often_and_no_more(kind: CheckKind) -> None:
    most = ALLOWANCES[kind]
    refuse_if_too_often(kind, most.of_subscription - 1, most.of_host - 1, "example.com")
    with pytest.raises(LimitReached):
        refuse_if_too_often(kind, most.of_subscription, 0, "example.com")
    with pytest.raises(LimitReached, match=r"example\.com"):
        refuse_if_too_often(kind, 0, most.of_host, "example.com")

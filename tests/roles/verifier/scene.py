"""Subscriptions, a receiver and a caller: what the tests of the verifier start from. Time is moved by data."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from tests.support.database import Database
from tests.support.receiver import Answer, Received, Receiver
from tidings.courier import Courier, Guard
from tidings.decisions.destinations import DestinationRules
from tidings.decisions.subscribing import SubscriptionRules
from tidings.decisions.verifying import LONGEST_ANSWER
from tidings.model.endpoint_check import CheckOutcome
from tidings.roles.subscriptions import actions
from tidings.roles.verifier.asking import ask_test, ask_verification
from tidings.roles.verifier.calling import EndpointCaller
from tidings.vault import Vault

HERE = ip_network("127.0.0.0/8")
RULES = SubscriptionRules(DestinationRules(http_hosts=["127.0.0.1"], networks=[HERE]))
SECRET, OTHER_SECRET = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"k", b"o"))


def proving(secret: str = SECRET, **more: Any) -> Callable[[Received], Answer]:
    """Answers with the proof, worked out without the product."""

    def answer(received: Received) -> Answer:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, f"verify.{challenge_in(received)}".encode(), hashlib.sha256).digest()
        return Answer(body=json.dumps({"proof": base64.b64encode(digest).decode()}).encode(), **more)

    return answer


def echoing(received: Received) -> Answer:
    return Answer(body=challenge_in(received).encode())


def challenge_in(received: Received) -> str:
    return str(json.loads(received.body)["data"]["challenge"])


@dataclass
class Scene:
    database: Database
    receiver: Receiver
    vault: Vault = field(default_factory=lambda: Vault(["the key of the tests"]))
    couriers: list[Courier] = field(default_factory=list)

    async def subscription(self, path: str = "/hook", verification: str = "proof", **given: Any) -> int:
        asked = {
            "event_type": "*",
            "callback_url": self.receiver.url(path),
            "secret": SECRET,
            "verification": verification,
            **given,
        }
        admin = await self.database.open("subscription_admin")
        made = await actions.create(admin, asked, actor="test", rules=RULES, vault=self.vault)
        return made.subscription.id

    async def edit(self, id: int, **given: Any) -> None:
        admin = await self.database.open("subscription_admin")
        await actions.edit(admin, id, given, actor="test", rules=RULES, vault=self.vault)

    async def ask(self, id: int) -> int | None:
        verifier = await self.database.open("subscription_verifier")
        return await ask_verification(verifier, id, actor="test", rules=RULES.destinations)

    async def ask_test(self, id: int) -> int:
        verifier = await self.database.open("subscription_verifier")
        return await ask_test(verifier, id, actor="test", rules=RULES.destinations)

    async def caller(self, *, guarded: bool = False) -> EndpointCaller:
        guard = Guard() if guarded else Guard(allow_networks=[HERE], allow_http_hosts=["127.0.0.1"])
        self.couriers.append(Courier(guard, excerpt_size=LONGEST_ANSWER + 1))
        engine = await self.database.open("subscription_verifier")
        return EndpointCaller(engine, self.couriers[-1], self.vault, timeout=5)

    async def call(self, check: int | None, *, guarded: bool = False) -> CheckOutcome:
        assert check is not None
        return await (await self.caller(guarded=guarded)).run(check, "correlated")

    async def verify(self, id: int) -> CheckOutcome:
        return await self.call(await self.ask(id))

    async def row(self, id: int) -> dict[str, Any]:
        (row,) = await self.database.sql(f"SELECT * FROM subscriptions WHERE id = {id}")
        return dict(row)

    async def is_verified(self, id: int) -> bool:
        return bool((await self.row(id))["verified"])

    async def check(self, id: int | None) -> dict[str, Any]:
        (row,) = await self.database.sql(f"SELECT * FROM endpoint_checks WHERE id = {id}")
        return dict(row)

    async def audited(self) -> list[tuple[str, str]]:
        rows = await self.database.sql("SELECT actor, action FROM audit_log ORDER BY id")
        return [(row["actor"], row["action"]) for row in rows]

    async def close(self) -> None:
        for courier in self.couriers:
            await courier.close()

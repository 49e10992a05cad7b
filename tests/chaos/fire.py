"""Breaks what the schedule says when it says so, and writes down what was really broken, from when to when."""

import asyncio
import datetime
import json
import random
import signal
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tests.chaos import adversary, asking
from tests.chaos.checker.tables import pid_of
from tests.chaos.crew import Crew
from tests.chaos.ground import Ground
from tests.chaos.schedule import Fault
from tests.support.waiting import pause
from tidings.decisions.subscribing import SubscriptionRules
from tidings.errors import DatabaseError, OutcomeUnknown, TidingsError
from tidings.roles.dead_letters import requeueing
from tidings.roles.dead_letters.operations import Filter
from tidings.roles.subscriptions import actions

ACTOR = "chaos"
# How long after a restart of the server, and after a cut, clients may still be finding their way back.
AFTERMATH, WAY_BACK = 3.0, 1.0
# How long the server is away at least: longer than slow endpoints take, so that what was under way has ended meanwhile
# and its report must be kept.
AWAY = 1.0
ENOUGH_UNDER_WAY, LONGEST_WAIT_FOR_WORK = 3, 8.0
LETTERS_AT_ONCE = 8
# When we ourselves come so much too late to our turn, others do as well.
TURN, LONGEST_STALL = 0.2, 1.0
LONGEST_SEARCH = 8.0
CROWDED, LONGEST_CHOICE = 6, 1.0
# How long another one has had the zombie's jobs when it comes back: the other is sending the first of them, or those
# that had to wait behind them. None: it comes back when it likes.
HEAD_STARTS = (0.1, 0.7, None)
GLANCE = 0.03


class Fire:
    def __init__(self, ground: Ground, crew: Crew) -> None:
        self._ground, self._crew = ground, crew
        self._chance = random.Random(f"fire {ground.seed}")
        self._going: set[asyncio.Future[None]] = set()
        self._restarting, self._pausing = asyncio.Lock(), asyncio.Lock()
        self.problems: list[str] = []
        self.restarts = self.stalls = self._freezes = 0
        self.log: list[str] = []

    async def burn(self, faults: list[Fault]) -> None:
        began = time.monotonic()
        for fault in faults:
            await pause(max(0.0, began + fault.at - time.monotonic()))
            self.log.append(str(fault))
            # Beside each other: what takes long does not hold up what comes next.
            self._go(self._strike(fault))
        await self.settle()

    async def settle(self) -> None:
        while self._going:
            await asyncio.wait(self._going)

    async def watch_the_machine(self) -> None:
        """A machine that stands still takes leases from processes that are well: that is a fault, too, if not ours."""
        while True:
            before = time.time()
            await pause(TURN)
            if time.time() - before > TURN + LONGEST_STALL:
                self.stalls += 1
                self._broken("stall", before, time.time())

    def hear_receiver(self, words: list[str]) -> None:
        if words[0] == "poison":
            self._go(self._poison(int(words[1])))

    def hear_relay(self, words: list[str]) -> None:
        if words == ["commit", "cut", "database"]:
            now = time.time()
            self._broken_for_relayed("cut commit", now, now + WAY_BACK)

    def _go(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._going.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._going.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.problems.append(f"a fault could not be made: {error!r}")

    async def _strike(self, fault: Fault) -> None:
        now = time.time()
        match fault.kind:
            case "kill":
                if pid := self._crew.kill(fault.target):
                    self._broken("kill", now, time.time(), pid)
            case "stop":
                self._crew.stop(fault.target)
            case "freeze":
                await self._freeze(fault)
            case "database":
                async with self._restarting:
                    await self._restart(fault.target)
            case "backend":
                await asyncio.to_thread(adversary.end_a_session, self._ground.database.admin_url, self._chance.random())
                self._broken("backend", now, time.time() + WAY_BACK)
            case "deadlock":
                await asyncio.to_thread(
                    adversary.cross, self._ground.database.admin_url, self._ground.database.names.schema
                )
                self._broken("deadlock", now, time.time())
            case "cut database" | "cut endpoints":
                self._ground.relay.tell(f"cut {fault.kind.split()[1]}")
                self._broken_for_relayed(fault.kind, now, now + WAY_BACK)
            case "freeze database" | "part database" | "freeze endpoints":
                self._ground.relay.tell(f"freeze {fault.kind.split()[1]} {fault.seconds}")
                self._broken_for_relayed(fault.kind, now, now + fault.seconds + WAY_BACK)
            case "cut commit":
                self._ground.relay.tell("cut-commit database")
            case "cut producers":
                self._ground.relay.tell("cut-commit producers")
            case "check":
                await self._check(fault)
            case "migrate":
                await asyncio.gather(self._migrate(), self._migrate())
            case _:
                await self._order(fault)

    async def _migrate(self) -> None:
        """Again when the server went away meanwhile."""
        while True:
            try:
                await self._ground.database.migrate(make_accounts=False)
                return
            except DatabaseError:
                await pause(0.5)

    async def _freeze(self, fault: Fault) -> None:
        """Whoever of this role has most that is slow under way, so that it comes back too late with it."""
        began = time.monotonic()
        while (searched := time.monotonic() - began) < LONGEST_SEARCH:
            occupied = Counter(await self._occupied(fault.target)).most_common()
            # Rather one that has something waiting, too.
            least = CROWDED if searched < LONGEST_CHOICE else 1
            for worker in (worker for worker, count in occupied if count >= least):
                at, pid = time.time(), pid_of(worker)
                if pid is not None and self._crew.freeze(pid):
                    await self._while_frozen(fault, worker)
                    self._crew.thaw(pid)
                    self._broken("freeze", at, time.time() + WAY_BACK, pid)
                    return
            await pause(0.05)

    async def _while_frozen(self, fault: Fault, worker: str) -> None:
        """Two of three come back at the worst moment: when another one has just begun with what they had."""
        began, head_start = time.monotonic(), HEAD_STARTS[self._freezes % len(HEAD_STARTS)]
        self._freezes += 1
        if head_start is not None:
            had = [row["id"] for row in await self._under_way(fault.target, f" AND worker_id = '{worker}'")]
            others = f" AND worker_id <> '{worker}' AND id IN ({', '.join(map(str, had))})"
            while had and time.monotonic() - began < fault.seconds:
                if await self._under_way(fault.target, others):
                    await pause(head_start)
                    return
                await pause(GLANCE)
        await pause(max(0.0, began + fault.seconds - time.monotonic()))

    async def _occupied(self, role: str, more: str = "") -> list[str]:
        return [row["worker_id"] for row in await self._under_way(role, more)]

    async def _under_way(self, role: str, more: str = "") -> list[dict[str, Any]]:
        """What takes its time, and who does it."""
        slow = ", ".join(str(one["id"]) for one in self._ground.subscriptions if one["kind"] == "slow")
        where = {
            "worker": f"webhook_delivery_jobs WHERE status = 'Leased' AND subscription_id IN ({slow})",
            "task-worker": "sys_pending_tasks WHERE status = 1 AND biz_type = 'SLOW'",
            "verifier": "sys_pending_tasks WHERE status = 1 AND biz_type LIKE 'subscription.%'",
        }[role]
        try:
            return await asyncio.to_thread(self._ground.witness.rows, f"SELECT id, worker_id FROM {where}{more}")
        except Exception:  # the server may be away; whatever its driver calls that
            return []

    async def _just_leased(self) -> list[str]:
        """Of slow jobs those whose leases outlast a restart."""
        left = self._ground.tier.lease * 0.8
        is_postgresql = self._ground.kind == "postgresql"
        until = f"now() + interval '{left} seconds'" if is_postgresql else f"UTC_TIMESTAMP(6) + INTERVAL {left} SECOND"
        return await self._occupied("worker", f" AND lease_until > {until}")

    async def _poison(self, port: int) -> None:
        """Killed before it has an answer: whoever calls this endpoint never reports."""
        now = time.time()
        if pid := await asyncio.to_thread(self._crew.kill_caller, port):
            self._broken("poison", now, time.time(), pid)

    async def _restart(self, way: str) -> None:
        """While requests are under way, if there are any soon: what they come to must be kept until it can be told."""
        asked = time.monotonic()
        while time.monotonic() - asked < LONGEST_WAIT_FOR_WORK and len(await self._just_leased()) < ENOUGH_UNDER_WAY:
            await pause(0.02)
        began, back = time.time(), None
        self.restarts += 1
        if way == "one backend" and self._ground.kind == "postgresql":
            await asyncio.to_thread(adversary.kill_a_backend, self._ground.database.admin_url, self._chance.random())
        else:
            await self._down(way)
            await pause(AWAY)
            back = time.time()
            await asyncio.to_thread(self._ground.server.start)
        self._broken("database", began, time.time() + AFTERMATH, back=back)

    async def _down(self, way: str) -> None:
        server = self._ground.server
        if way == "fast":
            await asyncio.to_thread(server.stop)
            return
        if way == "immediate" and self._ground.kind == "postgresql":
            assert server._process is not None
            server._process.send_signal(signal.SIGQUIT)
            await asyncio.to_thread(server._process.wait, 20)
        await asyncio.to_thread(server.kill)

    async def _order(self, fault: Fault) -> None:
        """What people do meanwhile; tried until it is done, or nobody can say whether it is."""
        order: dict[str, Any] = {"order": fault.kind, "at": time.time()}
        carry_out = {
            "pause": self._pause_alone,
            "edit": self._edit,
            "rotate": self._rotate,
            "requeue": self._requeue,
            "mass requeue": self._mass_requeue,
        }[fault.kind]
        for _ in range(20):
            try:
                await carry_out(fault, order)
                break
            except OutcomeUnknown:
                order["in_doubt"] = True
                break
            except TidingsError:
                await pause(0.5)
        else:
            order["failed"] = True
        self._write("orders.jsonl", order)

    def _subscription(self, fault: Fault) -> int:
        """One of those that are well, so that something is under way to it."""
        well = [one["id"] for one in self._ground.subscriptions if one["kind"] in ("well", "flapping", "slow")]
        chosen = well[int(fault.target.split()[1]) % len(well)]
        assert isinstance(chosen, int)
        return chosen

    async def _as(self, role: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
        engine = await self._ground.database.open(role, size=1)
        try:
            return await work(engine)
        finally:
            with suppress(TidingsError):
                await engine.close()

    async def _check(self, fault: Fault) -> None:
        """Somebody asks for a call to an endpoint; whoever makes it is killed, or it is asked for once more."""
        way, _, number = fault.target.rpartition(" ")
        kinds = ("agrees", "declines") if way.startswith("verify") else ("slow",)
        known = [one["id"] for one in self._ground.subscriptions if one["kind"] in kinds]
        order: dict[str, Any] = {"order": "check", "subscription": known[int(number) % len(known)], "checks": []}
        path = f"/v1/subscriptions/{order['subscription']}/{way.partition(',')[0]}"
        await self._ask(order, path)
        if order["checks"] and (caller := await self._caller(order["subscription"])):
            now = time.time()
            if way.endswith("twice"):
                await self._ask(order, path)
            elif (pid := pid_of(caller)) and self._crew.kill_process(pid):
                self._broken("kill", now, time.time(), pid)
        self._write("orders.jsonl", order)

    async def _ask(self, order: dict[str, Any], path: str) -> None:
        for _ in range(20):
            port = self._chance.choice([*self._ground.api_ports.values()]).number
            outcome, said = await asyncio.to_thread(asking.post, port, path, self._ground.operator_key)
            if outcome != "unreached":
                break
            await pause(0.3)
        order["checks"] += [said["check_id"]] if said.get("check_id") else []
        order["in_doubt"] = order.get("in_doubt", False) or outcome == "in doubt"

    async def _caller(self, subscription: int) -> str | None:
        """Who calls this endpoint, as soon as somebody does."""
        began = time.monotonic()
        while time.monotonic() - began < LONGEST_SEARCH:
            if callers := await self._occupied("verifier", f" AND biz_key LIKE '{subscription}:%'"):
                return callers[0]
            await pause(GLANCE)
        return None

    async def _pause_alone(self, fault: Fault, order: dict[str, Any]) -> None:
        """One after the other: the end of one would end another of the same subscription."""
        async with self._pausing:
            await self._pause(fault, order)

    async def _pause(self, fault: Fault, order: dict[str, Any]) -> None:
        id = order["subscription"] = self._subscription(fault)
        try:
            await self._as("subscription_admin", lambda engine: actions.pause(engine, id, actor=ACTOR))
            held_since = time.time()
            await pause(fault.seconds)
            order["held"] = [held_since, time.time()]
        except OutcomeUnknown:
            order["in_doubt"] = True
        order["audited"] = ["subscription.paused", "subscription.resumed"]
        # Whatever happens: nothing comes to its end while it is paused.
        while True:
            try:
                await self._as("subscription_admin", lambda engine: actions.resume(engine, id, actor=ACTOR))
                return
            except OutcomeUnknown:
                order["in_doubt"] = True
                order["audited"].append("subscription.resumed")
            except TidingsError:
                pass
            await pause(0.5)

    async def _edit(self, fault: Fault, order: dict[str, Any]) -> None:
        id = order["subscription"] = self._subscription(fault)
        changes = {"description": f"changed at {order['at']}", "max_in_flight": self._chance.choice([4, 16, 32])}
        rules = SubscriptionRules()
        await self._as(
            "subscription_admin",
            lambda engine: actions.edit(engine, id, changes, actor=ACTOR, rules=rules, vault=self._ground.vault),
        )
        order["audited"] = ["subscription.edited"]

    async def _rotate(self, fault: Fault, order: dict[str, Any]) -> None:
        id = order["subscription"] = self._subscription(fault)
        secret = "whsec_" + b64encode(self._chance.randbytes(24)).decode()
        await self._as(
            "subscription_admin",
            lambda engine: actions.rotate_secret(engine, id, actor=ACTOR, vault=self._ground.vault, secret=secret),
        )
        order |= {"secret": secret, "at": time.time(), "audited": ["subscription.secret_rotated"]}

    async def _requeue(self, fault: Fault, order: dict[str, Any]) -> None:
        # Not those that hang or kill: they would only take long to die once more.
        quick = ", ".join(
            str(one["id"]) for one in self._ground.subscriptions if one["kind"] not in ("poison", "hangs")
        )
        rows = await self._ground.database.sql(
            "SELECT l.id, l.saga_id FROM dead_letters l JOIN webhook_delivery_sagas s ON s.id = l.saga_id"
            " LEFT JOIN webhook_delivery_sagas n ON n.event_id = s.event_id AND n.subscription_id = s.subscription_id"
            f" AND n.generation = s.generation + 1 WHERE n.id IS NULL"
            f" AND l.subscription_id IN ({quick}) ORDER BY l.id LIMIT {LETTERS_AT_ONCE}"
        )
        if not rows:
            return
        # A second try means that nobody knows what came of the first.
        order["in_doubt"] = "sagas" in order
        order["sagas"] = order.get("sagas", []) + [row["saga_id"] for row in rows]
        order["audited"] = [*order.get("audited", ()), "dead_letters.requeued"]
        ids = [row["id"] for row in rows]
        await self._as("dead_letter_operator", lambda engine: requeueing.requeue(engine, ids, ACTOR))

    async def _mass_requeue(self, fault: Fault, order: dict[str, Any]) -> None:
        now = datetime.datetime.now(datetime.UTC)
        wanted = Filter(now - datetime.timedelta(days=1), now, error_code="connect_error")
        # A successor may be there already, or its story gone: asked for, but not certain.
        order["in_doubt"] = True
        order["audited"] = [*order.get("audited", ()), "mass_requeue.begun"]
        mass = await self._as("dead_letter_operator", lambda engine: requeueing.begin(engine, wanted, 100, ACTOR))
        while True:
            try:
                rows = await self._ground.database.sql(
                    "SELECT saga_id FROM dead_letters WHERE final_error_code = 'connect_error'"
                )
                order["sagas"] = [row["saga_id"] for row in rows]
                await self._as("dead_letter_operator", lambda engine: requeueing.run(engine, mass, lambda _: None))
                return
            except TidingsError:
                await pause(0.5)

    def _broken_for_relayed(self, kind: str, at: float, until: float) -> None:
        """Of processes only those that come by way of the relay; endpoints are reached through it by all."""
        if kind.endswith("endpoints"):
            self._broken(kind, at, until)
            return
        for pid in self._crew.relayed():
            self._broken(kind, at, until, pid)

    def _broken(self, kind: str, at: float, until: float, pid: int | None = None, back: float | None = None) -> None:
        self._write("broken.jsonl", {"kind": kind, "at": at, "until": until, "pid": pid, "back": back})

    def _write(self, name: str, line: dict[str, Any]) -> None:
        with (self._ground.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

"""Of what receivers got: only what was committed, byte for byte, rightly signed, no more often than is explained."""

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from standardwebhooks import Webhook

from tests.chaos.checker.ledgers import Ledgers, Request, Subscription
from tests.chaos.checker.tables import Story, Tables, pid_of

Pair = tuple[int, int]
# What may take a lease from a worker, or its answer; a process that is told to stop is no reason.
DEATHS = ("kill", "freeze", "poison")
AWAY = ("database", "backend", "cut database", "freeze database", "part database", "cut commit", "deadlock", "stall")
UNREACHED = ("cut endpoints", "freeze endpoints")
# A lease is taken a little after it is said to be, and moments of two clocks are compared.
SLACK = 0.5
# Where all clocks are that of one machine.
TICK = 0.005
# How long before and after its fault is said to be over somebody who was frozen may send what it had.
THAWED = 1.0
# What was leased before a rotation is sent with what was valid then.
AFTER_ROTATION = 5.0
# A receiver refuses what was signed longer ago.
OLDEST_SIGNATURE = 60.0
# An endpoint may be too slow for the deadline by itself.
MAY_TIME_OUT = {"slow", "hangs", "drips", "huge", "poison"}


def check_requests(ledgers: Ledgers, tables: Tables) -> Iterator[str]:
    story = Received(ledgers, tables)
    yield from story.strangers
    yield from story.contents()
    yield from story.repetitions()
    yield from story.beliefs()
    yield from story.ends()
    yield from story.lost_leases()
    yield from story.given_back()
    yield from story.unknown_answers()
    if ledgers.is_quiet:
        yield from story.quiet()
        yield from story.too_early()


class Received:
    """Requests by event and subscription, and by attempt, beside the jobs that they belong to."""

    def __init__(self, ledgers: Ledgers, tables: Tables) -> None:
        self._ledgers, self._tables = ledgers, tables
        self._by_path = {one.path: one for one in ledgers.subscriptions.values()}
        self._events = {story.first.note: id for id, story in tables.of("event").items()}
        self.requests: dict[Pair, list[Request]] = defaultdict(list)
        self.strangers: list[str] = []
        for request in ledgers.requests:
            self._sort(request)
        self.jobs: dict[Pair, list[Story]] = defaultdict(list)
        self.sagas: dict[Pair, list[Story]] = defaultdict(list)
        jobs = tables.jobs_of()
        for id, saga in tables.of("saga").items():
            pair = (saga.first.parent_id or 0, saga.first.peer_id or 0)
            self.sagas[pair].append(saga)
            self.jobs[pair] += jobs.get(id, [])

    def _sort(self, request: Request) -> None:
        subscription = self._by_path.get(request.path)
        event = self._ledgers.events.get(request.correlation_id) or self._ledgers.doubtful.get(request.correlation_id)
        if subscription is None or event is None or not subscription.wants(event["event_type"]):
            self.strangers.append(f"nobody asked for the request to {request.path} with {request.correlation_id}")
        elif (id := self._events.get(request.correlation_id)) is not None:
            self.requests[id, subscription.id].append(request)
        else:
            self.strangers.append(f"{request.correlation_id} was sent and never committed")

    def contents(self) -> Iterator[str]:
        produced = {**self._ledgers.doubtful, **self._ledgers.events}
        messages: dict[str, set[tuple[str, str]]] = defaultdict(set)
        names: dict[tuple[str, str], set[str]] = defaultdict(set)
        for request in self._ledgers.requests:
            event, subscription = produced.get(request.correlation_id), self._by_path.get(request.path)
            if event is None or subscription is None:
                continue
            if request.body != event["payload"]:
                yield f"{request.path} got other bytes than {request.correlation_id} has"
            if request.event_type != event["event_type"]:
                yield f"{request.path} was told the type {request.event_type} of {request.correlation_id}"
            yield from check_signature(request, subscription)
            names[request.path, request.correlation_id].add(request.message)
            messages[request.message].add((request.path, request.correlation_id))
        yield from (f"{key} came under {len(ids)} webhook ids" for key, ids in names.items() if len(ids) > 1)
        yield from (f"webhook id {id} stands for {len(keys)} things" for id, keys in messages.items() if len(keys) > 1)

    def repetitions(self) -> Iterator[str]:
        """An attempt is sent once, and once more for each time that its lease was taken from a worker."""
        for pair, requests in self.requests.items():
            allowed: Counter[int] = Counter()
            for job in self.jobs[pair]:
                allowed[job.first.place or 0] += 1 + (job.last.number or 0)
            for attempt, count in Counter(request.attempt for request in requests).items():
                if count > allowed[attempt]:
                    yield f"attempt {attempt} of {pair} was sent {count} times, {allowed[attempt]} are explained"

    def beliefs(self) -> Iterator[str]:
        """A stored status was said to whoever held the last lease of the job: stale reports are not believed."""
        for pair, jobs in self.jobs.items():
            for job in jobs:
                end = job.last
                finished = next((move for move in job.moves if move.new_status in ("Completed", "Failed")), None)
                if finished is None:
                    continue
                leased = leased_at(job)
                if end.answer is None:
                    waited = finished.at - leased
                    # Who has just got it can't have waited in vain: that was somebody else.
                    if finished.note == "timeout" and waited < self._ledgers.limits.get("timeout", 0.0) - TICK:
                        name = f"job {job.first.row_id}"
                        yield f"{name} says timeout; under its last lease was said nothing in {waited:.2f} s"
                    continue
                said = [
                    request.says
                    for request in self.requests.get(pair, ())
                    if request.attempt == job.first.place and leased - TICK <= request.at <= finished.at + TICK
                ]
                if end.answer not in said:
                    yield f"job {job.first.row_id} says {end.answer}; under its last lease was said {said}"

    def ends(self) -> Iterator[str]:
        """Completed: its receiver has said so. Dead: it has not, or nobody could know."""
        for pair, sagas in self.sagas.items():
            well = [request for request in self.requests.get(pair, ()) if request.went_well]
            completed = sum(saga.last.new_status == "Completed" for saga in sagas)
            if completed > len(well):
                yield f"{completed} sagas of {pair} are Completed, and its receiver said so {len(well)} times"
            for request in well:
                jobs = [job for job in self.jobs[pair] if job.first.place == request.attempt]
                if not any(_believed_or_unknown(job) or self._was_half_heard(pair, job) for job in jobs):
                    yield f"the receiver of {pair} said {request.says} to attempt {request.attempt}: not taken in"

    def _was_half_heard(self, pair: Pair, job: Story) -> bool:
        """The status came, and the rest of the answer did not come in time: as if nothing had been heard."""
        leased = leased_at(job)
        ended = job.moves[-1] if job.moves else job.last
        subscription = self._ledgers.subscriptions[pair[1]]
        return job.last.note == "timeout" and self._is_explained(subscription, ended.worker, leased, ended.at)

    def lost_leases(self) -> Iterator[str]:
        """Whoever lost a lease was killed, frozen, or cut off from the database meanwhile."""
        for jobs in self.jobs.values():
            for job in jobs:
                yield from (f"job {job.first.row_id} {wrong}" for wrong in self._lost(job))

    def _lost(self, job: Story) -> Iterator[str]:
        leased, resets = 0.0, 0
        for move in job.moves:
            if move.new_status == "Leased":
                leased = move.at
            elif (move.number or 0) > resets:
                resets = move.number or 0
                begin = leased - SLACK
                if not self._ledgers.explain((*DEATHS, *AWAY), pid_of(move.worker), begin, move.at):
                    yield f"lost the lease of {move.worker}, to whom nothing had happened"

    def given_back(self) -> Iterator[str]:
        """Only what was not sent is given back; a frozen worker that held it before may send it late."""
        for pair, jobs in self.jobs.items():
            for job in jobs:
                leased, resets, holders = 0.0, 0, set[int | None]()
                for move in job.moves:
                    if move.new_status == "Leased":
                        leased = move.at
                    elif move.new_status == "Pending" and move.number == resets:
                        sent = [
                            request
                            for request in self.requests.get(pair, ())
                            if request.attempt == job.first.place and leased <= request.at < move.at
                        ]
                        if any(not self._is_late(one, holders) for one in sent):
                            yield f"job {job.first.row_id} was sent and given back"
                    resets = move.number or 0
                    holders.add(pid_of(move.worker))

    def _is_late(self, request: Request, holders: set[int | None]) -> bool:
        """Who is frozen sends nothing: only when it is thawed, which is a little before its fault counts as over."""
        return any(
            one.kind == "freeze" and one.pid in holders and -THAWED - 4 * TICK < request.at - one.until < THAWED
            for one in self._ledgers.broken
        )

    def unknown_answers(self) -> Iterator[str]:
        """An endpoint said yes and the worker heard nothing: something between them was broken, or it was too slow."""
        for pair, jobs in self.jobs.items():
            subscription = self._ledgers.subscriptions[pair[1]]
            for job in jobs:
                failed = next((move for move in job.moves if move.new_status == "Failed"), None)
                if failed is None or failed.answer is not None or failed.note == "lease_expired":
                    continue
                leased = leased_at(job)
                heard = [
                    request
                    for request in self.requests.get(pair, ())
                    if request.went_well and request.attempt == job.first.place and request.at >= leased - SLACK
                ]
                if heard and not self._is_explained(subscription, failed.worker, leased, failed.at):
                    yield f"job {job.first.row_id} is {failed.note}, and its endpoint had said {heard[-1].says}"

    def _is_explained(self, subscription: Subscription, worker: str | None, begin: float, end: float) -> bool:
        if subscription.kind in MAY_TIME_OUT:
            return True
        pid = pid_of(worker)
        if subscription.relayed and self._ledgers.explain(UNREACHED, None, begin - SLACK, end):
            return True
        return self._ledgers.explain(("freeze",), pid, begin - SLACK, end)

    def too_early(self) -> Iterator[str]:
        """Between two attempts lies at least the delay, and what the endpoint asked for, as long as nothing is broken.

        A frozen connection may deliver a request long after it was sent: then only the due times in the database tell.
        """
        limits = self._ledgers.limits
        for pair, requests in self.requests.items():
            if len(self.sagas[pair]) != 1:
                continue
            first: dict[int, Request] = {}
            for request in requests:
                first.setdefault(request.attempt, request)
            for attempt, request in first.items():
                after = first.get(attempt + 1)
                if after is None:
                    continue
                least = min(limits["base_delay"] * 2 ** (attempt - 1), limits["max_delay"])
                if request.says == 429:
                    least = max(least, limits["busy_seconds"])
                if after.at - request.at < least - 0.02:
                    yield f"attempt {attempt + 1} of {pair} came after {after.at - request.at:.3f} s, not {least}"

    def quiet(self) -> Iterator[str]:
        """Without a fault nothing comes twice."""
        for pair, requests in self.requests.items():
            counts = Counter(request.attempt for request in requests)
            yield from (f"attempt {n} of {pair} was sent {c} times" for n, c in counts.items() if c > 1)
            well = sum(request.went_well for request in requests)
            if well > len(self.sagas[pair]):
                yield f"{pair} was delivered {well} times without a fault"


def leased_at(job: Story) -> float:
    """The last time."""
    return max((move.at for move in job.moves if move.new_status == "Leased"), default=0.0)


def _believed_or_unknown(job: Story) -> bool:
    end = job.last
    return end.new_status == "Completed" or end.answer is None or bool(end.number)


def check_signature(request: Request, subscription: Subscription) -> Iterator[str]:
    """By the reference library: under the first secret always, under a new one a moment after the rotation."""
    for since, secret in subscription.secrets:
        if since and request.at < since + AFTER_ROTATION:
            continue
        if not _verifies(secret, request):
            yield f"a request to {request.path} is not signed with the secret of {since:.0f}"


def _verifies(secret: str, request: Request) -> bool:
    """As the library does it, but at the moment when the request came, and not now."""
    try:
        moment = datetime.datetime.fromtimestamp(int(request.timestamp), datetime.UTC)
    except (ValueError, OverflowError):
        return False
    expected = Webhook(secret).sign(request.message, moment, request.body)
    return expected in request.signature.split(" ") and abs(moment.timestamp() - request.at) < OLDEST_SIGNATURE


def received_more_than_once(requests: Sequence[Request]) -> int:
    return sum(count > 1 for count in Counter((one.path, one.message) for one in requests if one.went_well).values())

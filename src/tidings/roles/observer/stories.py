"""Reads everything that is known of one event, from its acceptance to the last attempt of its last generation."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidings.roles.observer.listing import Shown, dicts
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.subscriptions import SeenSubscription, seen

_MOST_LETTERS = 200
_MOST_ASKED_ABOUT = 10
_MOST_DEEDS = 50
_BEFORE, _AFTER = datetime.timedelta(seconds=1), datetime.timedelta(seconds=5)


@dataclass(frozen=True)
class Deed:
    """Somebody gave a next generation to dead letters, or to sagas that had been delivered, with these ids."""

    actor: str
    action: str
    ids: frozenset[int]


@dataclass(frozen=True)
class Story:
    """`event` has its decisions, sagas with jobs, and tasks. `deeds` are those of its later generations."""

    event: Shown
    dead_letters: Sequence[Shown]
    subscriptions: Mapping[int, SeenSubscription]
    deeds: Sequence[Deed]


class StoryObserver(PageObserver):
    async def story(self, id: int, event_domain: str = "") -> Story:
        event = await self.event(id, event_domain)
        letters = await self._rows("dead_letters_of_event", event_id=id, limit=_MOST_LETTERS)
        ids = sorted({saga["subscription_id"] for saga in event["sagas"]})
        subscriptions = await self._rows("subscriptions_among", ids=ids) if ids else ()
        later = [saga["created_at"] for saga in event["sagas"] if saga["generation"] > 0]
        return Story(
            event,
            dicts(letters),
            {row["id"]: seen(row) for row in subscriptions},
            [deed for moment in later[:_MOST_ASKED_ABOUT] for deed in await self._deeds(moment)],
        )

    async def payload(self, id: int, event_domain: str = "") -> str:
        return str((await self._event_row(id, event_domain))["payload"])

    async def _deeds(self, moment: datetime.datetime) -> list[Deed]:
        """What people did about then: it stands in the audit log, written by the same transaction."""
        rows = await self._rows("deeds_on_letters", since=moment - _BEFORE, until=moment + _AFTER, limit=_MOST_DEEDS)
        return [Deed(row["actor"], row["action"], _ids(row["detail"])) for row in rows]


def _ids(detail: str | None) -> frozenset[int]:
    return frozenset(json.loads(detail or "{}").get("ids", ()))

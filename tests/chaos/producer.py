"""Producers: each writes events and tasks in transactions of its own, and into the ledger what the server acknowledged.

`python -m tests.chaos.producer CONFIG` reads a JSON file. Plain SQL on drivers that the product does not use. A few of
its transactions stay open for a while, some are rolled back; a COMMIT whose answer never came is in doubt.
"""

import contextlib
import json
import logging
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql

from tests.chaos.endpoints import GROUPS


class Producer(threading.Thread):
    """One connection at a time, made anew whenever it is lost."""

    def __init__(self, number: int, config: dict[str, Any], ledger: int) -> None:
        super().__init__(name=f"producer {number}")
        self._number, self._config, self._ledger = number, config, ledger
        self._chance = random.Random(f"{config['seed']}:{number}")
        self._made = 0

    def run(self) -> None:
        events, tasks = self._config["events"], self._config["tasks"]
        began, made = time.monotonic(), 0
        while made < events:
            size = min(self._chance.choice([1, 1, 2, 3, 5, 8, 13]), events - made)
            share = tasks * (made + size) // events - tasks * made // events
            if self._transaction(size, share):
                made += size
            # At a steady pace over the whole run, whatever is broken meanwhile.
            _rest(max(0.0, began + self._config["seconds"] * made / events - time.monotonic()))

    def _transaction(self, events: int, tasks: int) -> bool:
        new = [self._event() for _ in range(events)]
        work = [self._task() for _ in range(tasks)]
        lines = [{"kind": "event", **one} for one in new] + [{"kind": "task", **one} for one in work]
        outcome = "rolled back"
        try:
            connection = _connect(self._config["url"], self._config["schema"])
        except Exception:
            _rest(0.1)
            return False
        try:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO events (event_type, correlation_id, payload) VALUES (%s, %s, %s)",
                    [(one["event_type"], one["correlation_id"], one["payload"]) for one in new],
                )
                for one in work:
                    cursor.execute(
                        "INSERT INTO sys_pending_tasks (biz_type, biz_key, payload, max_retries, correlation_id)"
                        " VALUES (%s, %s, %s, %s, %s)",
                        (one["biz_type"], one["biz_key"], "{}", one["max_retries"], one["biz_key"]),
                    )
            if self._chance.random() < 0.1:
                _rest(self._chance.uniform(0.1, 1.0))
            if self._chance.random() < 0.05:
                connection.rollback()
                return False
            outcome = "in doubt"
            connection.commit()
            outcome = "committed"
        except Exception as error:
            lines.append({"kind": "error", "error": repr(error)[:300]})
        finally:
            self._write([{**line, "outcome": outcome, "at": time.time()} for line in lines])
            with contextlib.suppress(Exception):
                connection.close()
        return outcome == "committed"

    def _event(self) -> dict[str, Any]:
        self._made += 1
        groups = [group for group in GROUPS if group.event_type not in self._config["but"]]
        # The rarest ones first, by turns: none is missing in a short run.
        first = groups[-1 - self._number % 3]
        kind = (first if self._made == 1 else self._chance.choices(groups, [g.share for g in groups])[0]).event_type
        number = f"{self._number}-{self._made}"
        # Spaces and order as they are: what is delivered must be these very bytes.
        payload = f'{{"z":  "canary-{number}", "é": [1.0, 1e2],"a":{self._made} }}'
        return {"event_type": kind, "correlation_id": f"c-{self._config['seed']}-{number}", "payload": payload}

    def _task(self) -> dict[str, Any]:
        self._made += 1
        biz_type = self._chance.choice(["QUICK", "QUICK", "SLOW", "FLAKY"])
        key = f"t-{self._config['seed']}-{self._number}-{self._made}"
        return {"biz_type": biz_type, "biz_key": key, "max_retries": 8}

    def _write(self, lines: list[dict[str, Any]]) -> None:
        os.write(self._ledger, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def _rest(seconds: float) -> None:
    """The pace of a producer; nobody waits for a fact here."""
    threading.Event().wait(seconds)


def _connect(url: str, schema: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme == "postgresql":
        return psycopg.connect(url, connect_timeout=5, options=f"-c search_path={schema}")
    return pymysql.connect(
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=schema,
        charset="utf8mb4",
        connect_timeout=5,
        ssl_disabled=True,
        read_timeout=20,
    )


def main(path: Path) -> None:
    # A connection that is lost is no news here.
    logging.disable()
    config = json.loads(path.read_text("utf-8"))
    ledger = os.open(config["ledger"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    count = config["producers"]
    shares = [
        {
            **config,
            "events": config["events"] // count + (n < config["events"] % count),
            "tasks": config["tasks"] // count,
        }
        for n in range(count)
    ]
    producers = [Producer(number, share, ledger) for number, share in enumerate(shares)]
    for one in producers:
        one.start()
    for one in producers:
        one.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Producers: each writes events and tasks in transactions of its own, and into the ledger what the server acknowledged.

`python -m tests.chaos.producer CONFIG` reads a JSON file. Plain SQL on drivers that the product does not use. A few of
its transactions stay open for a while, some are rolled back; a COMMIT whose answer never came is in doubt. One of them
has no database, and publishes by the HTTP API.
"""

import contextlib
import http.client
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
        # Where there are no events, tasks come by themselves.
        began, made, most = time.monotonic(), 0, events or tasks
        while made < most:
            size = min(self._chance.choice([1, 1, 2, 3, 5, 8, 13]), most - made)
            share = tasks * (made + size) // most - tasks * made // most
            if self._transaction(size if events else 0, share):
                made += size
            # At a steady pace over the whole run, whatever is broken meanwhile.
            _rest(max(0.0, began + self._config["seconds"] * made / most - time.monotonic()))

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
                if new:
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


class Caller(Producer):
    """Publishes by HTTP, by way of whichever process of the API there is."""

    def _transaction(self, events: int, tasks: int) -> bool:
        new = [self._event() for _ in range(events)]
        outcome, error = "rolled back", ""
        connection = http.client.HTTPConnection("127.0.0.1", self._chance.choice(self._config["api"]), timeout=20)
        try:
            connection.connect()
            outcome = "in doubt"
            connection.request("POST", "/v1/events", _as_json(new), self._headers())
            answer = connection.getresponse()
            said = answer.read().decode()
            outcome, error = ("committed", "") if answer.status == 202 else (outcome, f"{answer.status} {said}")
        except (OSError, http.client.HTTPException) as failure:
            error = repr(failure)
        finally:
            connection.close()
        lines = [{"kind": "event", "by": "api", **one} for one in new]
        lines += [{"kind": "error", "error": error[:300]}] if error else []
        self._write([{**line, "outcome": outcome, "at": time.time()} for line in lines])
        if outcome != "committed":
            _rest(0.1)
        return outcome == "committed"

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._config['key']}", "content-type": "application/json"}


def _as_json(events: list[dict[str, Any]]) -> bytes:
    """Payloads as they are: their very bytes are to arrive."""
    texts = [
        f'{{"event_type": "{one["event_type"]}", "correlation_id": "{one["correlation_id"]}",'
        f' "payload": {one["payload"]}}}'
        for one in events
    ]
    return f"[{', '.join(texts)}]".encode()


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
    count, callers = config["producers"], int(bool(config["api"]))
    shares = [
        {
            **config,
            "events": config["events"] // count + (n < config["events"] % count),
            "tasks": config["tasks"] // (count - callers),
        }
        for n in range(count)
    ]
    kinds = [Producer] * (count - callers) + [Caller] * callers
    producers = [kind(number, share, ledger) for number, (kind, share) in enumerate(zip(kinds, shares, strict=True))]
    for one in producers:
        one.start()
    for one in producers:
        one.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

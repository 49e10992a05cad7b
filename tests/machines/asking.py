"""`python -m tests.machines.asking URL` asks for something that takes seconds; says after how long it was answered."""

import asyncio
import sys
import time

from tidings.db.engine import open_engine
from tidings.db.names import Names
from tidings.db.statements import Statement
from tidings.db.transaction import Transaction

SLOWLY = {"postgresql": "SELECT pg_sleep(3)", "mysql": "SELECT SLEEP(3)"}


async def ask(url: str) -> None:
    engine = await open_engine(url, owner="test", names=Names(), schema="", patience=60)
    question = Statement("test.slowly", SLOWLY[engine.dialect.family], ())
    sys.stdout.write("asks\n")
    sys.stdout.flush()
    began = time.monotonic()

    async def work(transaction: Transaction) -> None:
        await transaction.rows(question)

    await engine.step(work)
    sys.stdout.write(f"{time.monotonic() - began}\n")
    await engine.close()


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1]))

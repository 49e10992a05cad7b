"""Migrates in a child process, and in a new one as often as the child is killed; at last tells how many it took.

Arguments: the URL of an administrator, the schema, the prefix. A fork is quick, so that a test can kill at every step.
"""

import asyncio
import os
import signal
import sys

from tidings.db.accounts import ALL_ROLES
from tidings.db.engine import open_engine
from tidings.db.migrations.migrator import Migrator
from tidings.db.names import Names


async def migrate(url: str, schema: str, prefix: str) -> None:
    names = Names(schema, prefix)
    engine = await open_engine(url, owner="migrator", names=names, schema="", size=4, patience=5)
    await Migrator(engine, names).migrate({names.login(role): "test-only" for role in ALL_ROLES})
    await engine.close()


def main() -> int:
    for children in range(1, 1000):
        if (child := os.fork()) == 0:
            asyncio.run(migrate(*sys.argv[1:]))
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != -signal.SIGKILL:
            sys.stdout.write(f"child {children} ended with {code}\n")
            return code
    return 1


if __name__ == "__main__":
    sys.exit(main())

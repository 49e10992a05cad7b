"""What a server has written to its log, and how often it committed, by its own count."""

from dataclasses import dataclass

from tests.support.sessions import Session

# PostgreSQL's sessions tell of their commits once a second at most: over a run of ten seconds a few are missing.
_ASK = {
    "postgresql": "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, (SELECT SUM(xact_commit) FROM pg_stat_database)",
    "mysql": "SELECT (SELECT variable_value FROM information_schema.global_status"
    " WHERE variable_name = 'Innodb_os_log_written'),"
    " (SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Com_commit')",
}


@dataclass(frozen=True)
class Written:
    bytes: int
    commits: int

    def since(self, before: "Written") -> "Written":
        return Written(self.bytes - before.bytes, self.commits - before.commits)


async def written(session: Session, family: str) -> Written:
    ((size, commits),) = await session.run(_ASK[family])
    return Written(int(size), int(commits))

"""A PostgreSQL of our own in the data directory, shared by all who hold it and stopped after the last one.

Three locks (`flock`, so the kernel lets go of them however a process ends) keep the protocol:

- `switch.lock`, exclusive: taken by whoever joins, and by the keeper before it stops the server. Joining and
  stopping therefore never overlap: a newcomer finds a server that stays, or one that has stopped altogether.
- `holders.lock`, shared: one per hold, taken under the switch, kept until `close()` or the process's end.
- `keeper.lock`, exclusive: the right to start and stop PostgreSQL. The newcomer who finds it free takes it
  and passes the open lock on to the keeper that it starts: at no moment could there be two keepers.

The keeper is a detached process. Four times a second it sees that the server runs, and asks for the switch
and for `holders.lock`, exclusively, without waiting: who gets both knows that nobody holds and nobody can
arrive; it stops the server and goes. When the keeper was killed, the next newcomer starts another one, which
adopts the living server. When the directory was deleted under the keeper, it stops the server and goes, too.

A process that forks shares its hold with the child: the server stays until both are gone.
"""

from tidings.db.embedded.holding import EmbeddedServer, hold, peek

__all__ = ["EmbeddedServer", "hold", "peek"]

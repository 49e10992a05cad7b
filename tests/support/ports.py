"""Free TCP ports on loopback that stay ours while the server behind them is down."""

import socket
import sys

LOOPBACK = "127.0.0.1"


class ReservedPort:
    """A port nobody else can take until `release()`, neither to listen nor as the near end of a connection.

    On Linux a bound socket that does not listen keeps others out, and lets in a listener that sets
    SO_REUSEADDR, as all servers do. Elsewhere it would keep the listener out too, so there the port is only
    known to have been free.
    """

    def __init__(self) -> None:
        self._holder = socket.socket()
        self._holder.bind((LOOPBACK, 0))
        self.number: int = self._holder.getsockname()[1]
        # Only after bind: so that the kernel gave us a port that no other holder has.
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform != "linux":
            self._holder.close()

    def release(self) -> None:
        self._holder.close()

"""Why an attempt failed: the closed list, and the situation that each code stands for.

A code says how far the attempt came. Before `tls_error` in this list nothing was sent; from there on the endpoint
may have got the request.
"""

INVALID_REQUEST = "invalid_request"
BLOCKED_ADDRESS = "blocked_address"
NO_FREE_CONNECTION = "no_free_connection"
DNS_ERROR = "dns_error"
CONNECT_ERROR = "connect_error"
TLS_ERROR = "tls_error"
TIMEOUT = "timeout"
CONNECTION_LOST = "connection_lost"
PROTOCOL_ERROR = "protocol_error"
LEASE_EXPIRED = "lease_expired"

SITUATIONS = {
    INVALID_REQUEST: "A header of the subscription can't be sent: a name that HTTP does not allow or that Tidings sets "
    "itself, or a value outside visible ASCII.",
    BLOCKED_ADDRESS: "The rules for destinations refuse the URL, or an address to which its name leads.",
    NO_FREE_CONNECTION: "All connections that may be open, to this host or in all, were busy until the deadline.",
    DNS_ERROR: "The name could not be looked up, or not in time.",
    CONNECT_ERROR: "No connection could be made, or not in time.",
    TLS_ERROR: "TLS failed: a certificate that is expired, self-signed or for another host, a version before 1.2, or a "
    "handshake that broke off or was not done in time.",
    TIMEOUT: "The request was sent, and the response was not complete by the deadline.",
    CONNECTION_LOST: "The endpoint closed or reset the connection before the headers of its response were complete.",
    PROTOCOL_ERROR: "The endpoint answered with something that is not HTTP/1.1, with endless headers, or switched to "
    "another protocol.",
    "http_NNN": "The endpoint answered with a status other than 2xx, such as `http_503`. Redirects are not followed.",
    LEASE_EXPIRED: "The job was taken from its worker several times, because nothing was heard of it. Whether the "
    "request was sent is not known. The cleaner writes this one.",
}


class Failed(Exception):
    """An attempt ends here, with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def of_status(status: int) -> str | None:
    """None for success, which is 2xx and nothing else."""
    return None if 200 <= status < 300 else f"http_{status:03d}"

"""Endpoints that cost next to nothing, in a process of their own: nginx if it is here, a bare protocol otherwise."""

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import trustme

from bench.ports import LOOPBACK, free_ports, listens
from bench.sink import Answering
from tests.support.waiting import wait_until

NGINX = """
daemon off; worker_processes 1; pid {here}/pid; error_log {here}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 75s; client_body_temp_path {here}/body;
  proxy_temp_path {here}/p; fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
  server {{ listen 127.0.0.1:{http}; location / {{ return 200 "ok\\n"; }} }}
  server {{ listen 127.0.0.1:{https} ssl; ssl_certificate {here}/pem; ssl_certificate_key {here}/pem;
            location / {{ return 200 "ok\\n"; }} }}
}}
"""


class Sink(NamedTuple):
    name: str
    http: str
    https: str
    trusted: ssl.SSLContext
    authority: Path
    pid: int

    def url(self, scheme: str) -> str:
        return self.https if scheme == "https" else self.http


@contextmanager
def running(kind: str) -> Iterator[Sink]:
    """`kind` is `nginx`, `python`, or `auto`."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if kind == "nginx" and nginx is None:
        raise SystemExit("nginx is not installed")
    with TemporaryDirectory() as directory:
        here = Path(directory)
        here.chmod(0o755)
        authority = trustme.CA()
        authority.issue_cert(LOOPBACK).private_key_and_cert_chain_pem.write_to_path(here / "pem")
        authority.cert_pem.write_to_path(here / "authority.pem")
        ports = free_ports(2)
        if nginx is None or kind == "python":
            name, command = "python", [sys.executable, "-m", "bench.courier.sink", *map(str, ports), str(here / "pem")]
        else:
            (here / "conf").write_text(NGINX.format(here=here, http=ports[0], https=ports[1]))
            name, command = "nginx", [nginx, "-c", str(here / "conf"), "-p", str(here), "-e", str(here / "error.log")]
        process = subprocess.Popen(command)
        try:
            for port in ports:
                wait_until(partial(listens, port), what="the sink")
            trusted = ssl.create_default_context()
            authority.configure_trust(trusted)
            http, https = f"http://{LOOPBACK}:{ports[0]}/hook", f"https://{LOOPBACK}:{ports[1]}/hook"
            yield Sink(name, http, https, trusted, here / "authority.pem", process.pid)
        finally:
            process.terminate()
            process.wait(10)


async def _serve(http: int, https: int, pem: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    loop = asyncio.get_running_loop()
    await loop.create_server(Answering, LOOPBACK, http)
    await loop.create_server(Answering, LOOPBACK, https, ssl=context)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))

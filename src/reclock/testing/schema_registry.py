"""A schema registry in memory, on loopback: as much of Confluent's as reclock asks for.

::

    POST /subjects/<subject>/versions      registers a schema, or finds it: {"id": 1}
    POST /subjects/<subject>               finds a schema
    GET  /subjects/<subject>/versions/<v>  a version, or ``latest``
    GET  /schemas/ids/<id>                 a schema

A schema has one id in all subjects. Others get a 404 with the error codes of Confluent's. What
``refused`` says is the answer to every schema that is posted.

Tests: tests/connectors/format/test_registry.py.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class SchemaRegistry:
    """What a registry knows, and what it was asked."""

    def __init__(self, login: str | None = None) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.refused: str | None = None
        self._expected = None if login is None else b64encode(login.encode()).decode()
        self._lock = threading.Lock()
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}

    def register(self, subject: str, schema: object, references: Sequence[object] = ()) -> int:
        """Return the id of ``schema``, a JSON value, in ``subject``."""
        body: dict[str, Any] = {"schema": json.dumps(schema)}
        if references:
            body["references"] = list(references)
        return self.add(subject, body)

    def add(self, subject: str, body: dict[str, Any]) -> int:
        """Register what was posted."""
        names = ("schema", "schemaType", "references")
        kept: dict[str, Any] = {name: body[name] for name in names if name in body}
        with self._lock:
            if kept not in self._schemas:
                self._schemas.append(kept)
            number = self._schemas.index(kept) + 1
            versions = self._subjects.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
            return number

    def find(self, subject: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the answer to a request for the id of a schema."""
        with self._lock:
            numbers = self._subjects.get(subject)
            if numbers is None:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            for number in numbers:
                if self._schemas[number - 1]["schema"] == body["schema"]:
                    return 200, {"subject": subject, "id": number, **body}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def lets_in(self, login: str | None) -> bool:
        """Return whether a request with this header is allowed."""
        return self._expected is None or login == f"Basic {self._expected}"

    def answer(self, path: str, login: str | None) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer to a GET."""
        self.asked.append(path)
        if not self.lets_in(login):
            return 401, {"error_code": 401, "message": "Unauthorized"}
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["schemas", "ids", number]:
                return self._by_id(int(number))
            case ["subjects", subject, "versions", version]:
                return self._version(subject, version)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _by_id(self, number: int) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if not 1 <= number <= len(self._schemas):
                return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
            return 200, self._schemas[number - 1]

    def _version(self, subject: str, version: str) -> tuple[int, dict[str, Any]]:
        with self._lock:
            numbers = self._subjects.get(subject)
            if numbers is None:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            at = len(numbers) if version == "latest" else int(version)
            if not 1 <= at <= len(numbers):
                return 404, {"error_code": 40402, "message": f"Version {version} not found."}
            number = numbers[at - 1]
            found = self._schemas[number - 1]
        return 200, {"subject": subject, "version": at, "id": number, **found}


@contextmanager
def running_registry(login: str | None = None) -> Iterator[SchemaRegistry]:
    """Serve a new registry; with ``login``, ``user:password``, to those who give it."""
    registry = SchemaRegistry(login)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*registry.answer(self.path, self.headers["Authorization"]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            subject = unquote(self.path.removeprefix("/subjects/").removesuffix("/versions"))
            registry.asked.append(self.path)
            if not registry.lets_in(self.headers["Authorization"]):
                self._send(401, {"error_code": 401, "message": "Unauthorized"})
            elif not self.path.endswith("/versions"):
                self._send(*registry.find(subject, body))
            elif registry.refused is not None:
                self._send(409, {"error_code": 409, "message": registry.refused})
            else:
                self._send(200, {"id": registry.add(subject, body)})

        def _send(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()

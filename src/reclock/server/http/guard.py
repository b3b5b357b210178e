"""What holds for every request: counts, rates, other sites kept out, headers of security.

The SQLSTATE of an error says the status: 28… is 401, 42501 is 403, 533… is 503, 534… is 429, 54000
is 413, those of the system are 500, and everything else is 400.

Tests: tests/server/http/test_app.py, test_hostile.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from reclock.errors import Error
from reclock.server.http.door import address_of
from reclock.server.http.values import dumps, error_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from reclock.server.http.parts import Parts

HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_OPEN: Final = frozenset({"/healthz", "/readyz"})


class Guard:
    """What holds for every request."""

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._p = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        path, gauges = scope["path"], self._p.gauges

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = {name.lower() for name, _ in message["headers"]}
                given = {**HEADERS, "content-security-policy": "default-src 'none'"}
                if self._p.door.encrypts:
                    given["strict-transport-security"] = "max-age=31536000"
                if not path.startswith("/static/"):
                    given["cache-control"] = "no-store"
                else:
                    given["cache-control"] = "no-cache"
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in given.items()
                    if name.encode() not in found
                ]
                route = (
                    path if path in self._p.paths else "/static" if path[:7] == "/static" else ""
                )
                gauges.answer(route or "other", message["status"])
            await send(message)

        gauges.requests += 1
        try:
            rates = self._p.probes if path in _OPEN else self._p.rates
            rates.take(address_of(request))
            if path != "/" and not path.startswith("/static/"):
                self._p.door.check_site(request)
        except Error as error:
            refused = answered({"error": error_of(error)}, status_of(error))
            await refused(scope, receive, answer)
        else:
            await self._app(scope, receive, answer)
        finally:
            gauges.requests -= 1


def status_of(error: Error) -> int:
    """Return the status of an answer that is an error.

    >>> from reclock.errors import Rejected
    >>> status_of(Rejected("no")), status_of(Error("no")), status_of(Error("no", code="42601"))
    (401, 500, 400)
    """
    code = error.code
    for begins, status in _STATUS.items():
        if code.startswith(begins):
            return status
    return 400


_STATUS: Final = {
    "28": 401, "42501": 403, "42P01": 404, "534": 429, "533": 503, "54000": 413,
    "53": 503, "57014": 408, "57P": 503, "58": 500, "XX": 500, "08006": 499,
}  # fmt: skip


def answered(value: Any, status: int = 200) -> Response:
    """Return a value as an answer of JSON."""
    return Response(dumps(value), status, media_type="application/json")

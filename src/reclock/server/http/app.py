"""The routes: who may ask what, and how an answer looks.

Every route goes through ``guard``. Errors are JSON with the parts of every error of reclock; a bug
says nothing of itself.

Tests: tests/server/http/test_app.py.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from reclock.errors import Error, Interrupted, MalformedMessage, Rejected, UndefinedName
from reclock.server.http import picture, sql
from reclock.server.http.door import LIFETIME_SECONDS, address_of, is_superuser
from reclock.server.http.guard import Guard, answered, status_of
from reclock.server.http.health import To, readiness
from reclock.server.http.limits import (
    BODY_BYTES,
    LOGIN_BYTES,
    STATEMENTS,
    WAITING,
    body_of,
    checked,
)
from reclock.server.http.looks import in_turn
from reclock.server.http.metrics import CONTENT_TYPE
from reclock.server.http.openapi import description
from reclock.server.http.sending import Sending
from reclock.server.http.values import error_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from reclock.server.http.door import Caller
    from reclock.server.http.parts import Parts
    from reclock.session.session import Session

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_NONCE: Final = "__NONCE__"


class App:
    """The application over the parts of a server."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._running = asyncio.Semaphore(STATEMENTS)
        self._waiting = 0
        static = resources.files("reclock.server.http") / "static"
        self._page = (static / "index.html").read_text(encoding="utf-8")
        routes = [
            Route("/", self._answered(self.page, free=True)),
            Route("/healthz", self._answered(self.healthz, free=True)),
            Route("/readyz", self._answered(self.readyz, free=True)),
            Route("/metrics", self._answered(self.metrics)),
            Route("/api/openapi.json", self._answered(self.openapi, free=True)),
            Route("/api/login", self._answered(self.login, free=True), methods=["POST"]),
            Route("/api/logout", self._answered(self.logout, free=True), methods=["POST"]),
            Route("/api/session", self._answered(self.session)),
            Route("/api/sql", self._answered(self.run), methods=["POST"]),
            Route("/api/subscribe", self._answered(self.subscribe), methods=["GET", "POST"]),
            Route("/api/overview", self._answered(self.overview)),
            Route("/api/history", self._answered(self.history)),
            Route("/api/time", self._answered(self.time)),
            Route("/api/pipeline", self._answered(self.pipeline)),
            Route("/api/object", self._answered(self.inside)),
            Mount("/static", StaticFiles(directory=str(static))),
        ]
        middleware = [
            Middleware(Guard, parts=parts),
            Middleware(GZipMiddleware, minimum_size=1_024, compresslevel=6),
        ]
        self.asgi = Starlette(routes=routes, middleware=middleware)

    def _answered(
        self, endpoint: Callable[..., Awaitable[Response]], *, free: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that knows who asks, and whose errors are answers."""

        async def answer(request: Request) -> Response:
            try:
                if free:
                    return await endpoint(request)
                return await endpoint(request, await self._caller(request))
            except Error as error:
                return self._refused(request, error)
            except Exception as error:
                self._p.fault(error)
                return answered({"error": error_of(error)}, 500)

        return answer

    async def _caller(self, request: Request) -> Caller:
        """Return who asks; only a password that was not checked yet takes a thread."""
        door = self._p.door
        known = door.known(request)
        return await asyncio.to_thread(door.caller, request) if known is None else known

    def _refused(self, request: Request, error: Error) -> Response:
        status = status_of(error)
        if isinstance(error, Rejected):
            self._p.refused(address_of(request), request.url.path, error)
        response = answered({"error": error_of(error)}, status)
        if status == 401:
            basic = request.url.path == "/metrics"
            response.headers["www-authenticate"] = 'Basic realm="reclock"' if basic else "Bearer"
        return response

    # For machines.

    async def healthz(self, request: Request) -> Response:
        """Say that the process lives."""
        del request
        return answered({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Say whether everything moves, or what does not."""
        to = To.SUPERUSER if self._p.door.trusts(request) else To.STRANGER
        if request.headers.get("authorization") or request.cookies.get(self._p.door.cookie):
            with suppress(Rejected):  # a session that has ended changes nothing of how things are
                caller = await self._caller(request)
                to = To.SUPERUSER if is_superuser(self._p.db, caller) else To.ROLE
        ready, reasons = readiness(self._p.db, to)
        made = {"status": "ready" if ready else "not ready", "reasons": reasons}
        return answered(made, 200 if ready else 503)

    async def metrics(self, request: Request, caller: Caller) -> Response:
        """Give all metrics."""
        del request, caller
        text = await asyncio.to_thread(in_turn, self._p.metrics.text)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    async def openapi(self, request: Request) -> Response:
        """Describe the interface."""
        del request
        return answered(description())

    # Who.

    async def login(self, request: Request) -> Response:
        """Begin a session: a cookie for browsers, a token for programs."""
        given = await _object(request)
        user, password = given.get("user", ""), given.get("password", "")
        if not isinstance(user, str) or not isinstance(password, str):
            message = "user and password are text"
            raise MalformedMessage(message)
        door = self._p.door
        token = await asyncio.to_thread(door.log_in, request, user, password)
        if given.get("token") is True:
            return answered({"token": token, "expires_in": LIFETIME_SECONDS})
        response = answered({"user": user})
        response.set_cookie(
            door.cookie, token, max_age=LIFETIME_SECONDS, path="/",
            secure=door.is_safe(request), httponly=True, samesite="strict",
        )  # fmt: skip
        return response

    async def logout(self, request: Request) -> Response:
        """End a session."""
        await _object(request)
        door = self._p.door
        door.log_out(request.cookies.get(door.cookie, ""))
        door.log_out(request.headers.get("authorization", "").partition(" ")[2].strip())
        response = answered({})
        response.delete_cookie(door.cookie, path="/", secure=door.is_safe(request),
                               httponly=True, samesite="strict")  # fmt: skip
        return response

    async def session(self, request: Request, caller: Caller) -> Response:
        """Say who asks."""
        del request
        superuser = is_superuser(self._p.db, caller)
        return answered({"user": caller.role, "superuser": superuser})

    # SQL.

    async def run(self, request: Request, caller: Caller) -> Response:
        """Run statements."""
        ask = sql.Ask.read(await _body(request))
        if self._waiting >= WAITING:
            message = "too many statements wait"
            raise Rejected(message, code="53300", hint="try again in a moment")
        self._waiting += 1
        try:
            await self._running.acquire()
        finally:
            self._waiting -= 1
        try:
            return answered(await self._ran(request, caller, ask))
        finally:
            self._running.release()

    async def _ran(self, request: Request, caller: Caller, ask: sql.Ask) -> Any:
        session = self._p.session(caller.role)
        loop = asyncio.get_running_loop()

        def run() -> Any:
            with session:
                return sql.answer(session, ask)

        work = loop.run_in_executor(self._p.pool, run)
        gone = loop.create_task(_gone(request))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                message = "the client has gone"
                session.interrupt.set(Interrupted(message, code="08006"))
            return await work
        finally:
            gone.cancel()

    async def subscribe(self, request: Request, caller: Caller) -> Response:
        """Follow a SUBSCRIBE."""
        if request.method == "POST":
            ask = sql.Ask.read(await _body(request))
        else:
            ask = sql.Ask(checked(request.query_params.get("query", "")))
        lines = "application/x-ndjson" in request.headers.get("accept", "")
        last = request.headers.get("last-event-id")

        def session() -> Session:
            return self._p.session(caller.role)

        stream, again = await self._p.streams.open(session, caller, ask, last)
        return Sending(self._p, stream, again, caller, lines=lines)

    # Pictures.

    async def overview(self, request: Request, caller: Caller) -> Response:
        """Say how everything does."""
        told = is_superuser(self._p.db, caller)
        look = partial(picture.overview, self._p.db, self._p.history, told=told)
        return (await self._p.looks.at("overview", told=told, look=look)).answer(request)

    async def history(self, request: Request, caller: Caller) -> Response:
        """Give the samples of the last hour after a time."""
        del caller
        found = self._p.history.since(_since(request))
        return Response(found, media_type="application/json")

    async def time(self, request: Request, caller: Caller) -> Response:
        """Give the bindings after a number that an earlier answer had, and all holds."""
        del caller
        look = self._p.remaps.look
        holds = (await self._p.looks.at("time", told=False, look=look)).plain
        found = self._p.remaps.since(_since(request), holds)
        return Response(found, media_type="application/json")

    async def pipeline(self, request: Request, caller: Caller) -> Response:
        """Give the graph of objects."""
        del caller
        look, of = partial(picture.pipeline, self._p.db), self._p.db.facts.catalog
        found = await self._p.looks.at("pipeline", told=False, look=look, of=of)
        return found.answer(request)

    async def inside(self, request: Request, caller: Caller) -> Response:
        """Give the operators of an object."""
        del caller
        name = request.query_params.get("name", "")
        found = await asyncio.to_thread(in_turn, partial(picture.inside, self._p.db, name))
        if found is None:
            message = f'"{name[:60]}" does not exist, or computes nothing'
            raise UndefinedName(message, code="42P01", hint="/api/pipeline has all names")
        return answered(found)

    async def page(self, request: Request) -> Response:
        """Give the console."""
        del request
        nonce = secrets.token_urlsafe(16)
        text = self._page.replace(_NONCE, nonce)
        policy = POLICY.format(nonce=nonce)
        headers = {"content-security-policy": policy, "cache-control": "no-store"}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def _since(request: Request) -> int:
    """Return the number in a query; 0, which is before all others, if there is none."""
    since = request.query_params.get("since", "0")
    return int(since) if since.isascii() and since.isdigit() and len(since) <= 18 else 0


async def _body(request: Request, most: int = BODY_BYTES) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        message = "the request is not application/json"
        raise MalformedMessage(message, hint="send Content-Type: application/json")
    return await body_of(request, most)


async def _object(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await _body(request, LOGIN_BYTES) or b"{}")
    except (ValueError, RecursionError) as cause:
        message = "the request is not JSON"
        raise MalformedMessage(message) from cause
    if not isinstance(found, dict):
        message = "the request is not an object"
        raise MalformedMessage(message)
    checked(found)
    return found


async def _gone(request: Request) -> None:
    """Wait until a client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

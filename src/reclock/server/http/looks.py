"""Pictures that many look at, made once: an answer is as old as ``FRESH_SECONDS``, and no older.

One of the catalog is made again at once when that is another: who creates an object sees it.
A page asks every two seconds. Ten consoles that do cost one look, one text and one compression in
that time. Who asks while it is made waits for it; and a look begins when no tick is running
(``arrangement.precedence``), or after a while.

Tests: tests/server/http/test_looks.py.
"""

from __future__ import annotations

import asyncio
import gzip
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.responses import Response

from reclock.arrangement.precedence import PRECEDENCE
from reclock.server.http.values import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

T = TypeVar("T")

FRESH_SECONDS: Final = 1.9
SMALL: Final = 1_024
"""What is smaller is not compressed."""


class Picture:
    """A text of JSON, when it was made, and of what if that is known."""

    def __init__(self, value: Any, of: object = None) -> None:
        self.made = monotonic()
        self.of = of
        self.plain = dumps(value)
        self.packed = None if len(self.plain) < SMALL else gzip.compress(self.plain, 1)

    def answer(self, request: Request) -> Response:
        """Return it as the client can read it."""
        packs = "gzip" in request.headers.get("accept-encoding", "")
        if self.packed is None or not packs:
            return Response(self.plain, media_type="application/json")
        headers = {"content-encoding": "gzip", "vary": "Accept-Encoding"}
        return Response(self.packed, media_type="application/json", headers=headers)


class Looks:
    """The pictures of a server, by what they are of and for whom."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, bool], Picture] = {}
        self._turns: dict[tuple[str, bool], asyncio.Lock] = {}

    async def at(
        self, name: str, *, told: bool, look: Callable[[], Any], of: object = None
    ) -> Picture:
        """Return a picture, made by ``look`` in a thread if there is none that is new enough.

        ``told`` is part of its name: who may see errors sees another picture. One of something else
        than ``of`` is old.
        """
        key = name, told
        async with self._turns.setdefault(key, asyncio.Lock()):
            found = self._made.get(key)
            if found is None or found.of is not of or monotonic() - found.made > FRESH_SECONDS:
                made = await asyncio.to_thread(in_turn, lambda: Picture(look(), of))
                found = self._made[key] = made
            return found


def in_turn(work: Callable[[], T]) -> T:
    """Do something that shows how all does, when no tick is running, or after a while."""
    PRECEDENCE.wait()
    return work()

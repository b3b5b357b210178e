"""Pictures that many look at, made once: an answer is as old as ``FRESH_SECONDS``, and no older.

Ten consoles that ask at the same moment cost one look, one text and one compression. Who asks
while it is made waits for it.

Tests: tests/server/http/test_looks.py.
"""

from __future__ import annotations

import asyncio
import gzip
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from reclock.server.http.values import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

FRESH_SECONDS: Final = 0.9
SMALL: Final = 1_024
"""What is smaller is not compressed."""


class Picture:
    """A text of JSON, and when it was made."""

    def __init__(self, value: Any) -> None:
        self.made = monotonic()
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

    async def at(self, name: str, *, told: bool, look: Callable[[], Any]) -> Picture:
        """Return a picture, made by ``look`` in a thread if there is none that is new enough.

        ``told`` is part of its name: who may see errors sees another picture.
        """
        key = name, told
        async with self._turns.setdefault(key, asyncio.Lock()):
            found = self._made.get(key)
            if found is None or monotonic() - found.made > FRESH_SECONDS:
                found = await asyncio.to_thread(lambda: Picture(look()))
                self._made[key] = found
            return found

"""A server inside a program: its event loop runs in a thread of its own.

Tests: tests/server/test_server.py.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reclock.server.server import Options, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.session.database import Database


def _silent(event: str, words: str, **facts: object) -> None:
    del event, words, facts


@contextmanager
def serving(
    db: Database, options: Options | None = None, say: Callable[..., None] = _silent
) -> Iterator[Server]:
    """Serve a database until the block ends; the server's ``port`` says where."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="reclock-server", daemon=True)
    thread.start()
    server = Server(db, options or Options(port=0), say)
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

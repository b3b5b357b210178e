"""The HTTP server of a command: where it listens, and what is said of it.

``reclock serve`` listens at the usual place unless it is told otherwise; if that is taken and was
not asked for, it goes on without, and says so. Tests: tests/cli/test_http.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reclock.cli.options import HTTP_PLACE, place_of
from reclock.errors import InvalidValue
from reclock.session.file_roots import FileRoots

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from reclock.cli.log import Log
    from reclock.session.database import Database

DEFAULT: Final = HTTP_PLACE


def _none() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen, None is nowhere, and to whom; ``must`` says that it was asked for."""

    place: tuple[str, int] | None
    tls: ssl.SSLContext | None = None
    trusts_local: bool = False
    files: FileRoots = field(default_factory=FileRoots)
    must: bool = True
    connections: Callable[[], int] = _none

    @classmethod
    def of(
        cls,
        text: str | None,
        *,
        tls: ssl.SSLContext | None,
        trusts_local: bool,
        files: FileRoots | None = None,
        must: bool = True,
    ) -> Listening:
        """Return what an option says."""
        place = None if text is None else place_of(text)
        return cls(place, tls, trusts_local, files or FileRoots(), must)


@contextmanager
def listening(db: Database, wanted: Listening, log: Log) -> Iterator[None]:
    """Serve a database over HTTP until the block ends, if that is wanted."""
    if wanted.place is None:
        yield
        return
    from reclock.server.http.door import is_local  # noqa: PLC0415 - the other commands start faster
    from reclock.server.http.server import HttpOptions, HttpServer  # noqa: PLC0415

    host, port = wanted.place
    options = HttpOptions(
        host, port, wanted.tls, wanted.trusts_local, wanted.files, wanted.connections
    )
    server = HttpServer(db, options, log.say)
    try:
        server.start()
    except InvalidValue as error:
        if wanted.must:
            raise
        words = f"no console: {error.message}"
        log.say("no_http", words, level="warning", code=error.code, detail=error.detail)
        yield
        return
    if wanted.tls is None and not (is_local(host) or host == "localhost"):
        words = "passwords sent over HTTP can be read on the way: give --tls-cert and --tls-key"
        log.say("http_plain", words, level="warning", host=host)
    words = f"console at {server.url}"
    log.say("http", words, host=host, port=server.port, url=server.url)
    try:
        yield
    finally:
        server.close()

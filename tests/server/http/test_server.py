"""Where it listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import InvalidValue
from reclock.server.http.server import HttpOptions, HttpServer

if TYPE_CHECKING:
    from reclock.session.database import Database


def test_a_port_that_is_taken_is_an_error_that_says_so(db: Database, server: HttpServer) -> None:
    with pytest.raises(InvalidValue, match="cannot listen for HTTP") as raised:
        HttpServer(db, HttpOptions(port=server.port)).start()
    assert "--http" in str(raised.value.hint)


def test_loopback_unless_told_otherwise() -> None:
    assert HttpOptions().host == "127.0.0.1"

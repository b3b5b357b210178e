"""The HTTP server of a command."""

from __future__ import annotations

import io
import socket
from typing import TYPE_CHECKING

import httpx
import pytest
from rich.console import Console

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.http import Listening, listening
from reclock.cli.log import Log
from reclock.cli.options import place_of
from reclock.errors import InvalidValue
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "state", ModelEngine(), background=False) as made:
        yield made


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(said: io.StringIO) -> Log:
    return Log(Console(file=said, width=1_000), ManualClock(0), "json")


def test_it_says_where_the_console_is(db: Database, log: Log, said: io.StringIO) -> None:
    wanted = Listening.of("127.0.0.1:0", tls=None, trusts_local=True)
    with listening(db, wanted, log):
        url = said.getvalue().partition('"url": "')[2].partition('"')[0]
        assert httpx.get(f"{url}healthz").status_code == 200


def test_off_is_nowhere(db: Database, log: Log, said: io.StringIO) -> None:
    with listening(db, Listening.of("off", tls=None, trusts_local=False), log):
        assert said.getvalue() == ""


def test_the_usual_place_may_be_taken_one_that_was_asked_for_not(
    db: Database, log: Log, said: io.StringIO
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with listening(db, Listening.of(place, tls=None, trusts_local=False, must=False), log):
            assert "no_http" in said.getvalue()
        with (
            pytest.raises(InvalidValue, match="cannot listen"),
            listening(db, Listening.of(place, tls=None, trusts_local=False), log),
        ):
            pass


def test_passwords_in_the_clear_are_warned_of(db: Database, log: Log, said: io.StringIO) -> None:
    with listening(db, Listening.of("0.0.0.0:0", tls=None, trusts_local=False), log):
        assert "http_plain" in said.getvalue()


@pytest.mark.parametrize("text", ["127.0.0.1:x", "a:99999", "::::x"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is not HOST:PORT"):
        place_of(text)

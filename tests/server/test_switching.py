"""Turns of threads are short while a server runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.server.server import Options
from reclock.server.switching import SECONDS, Switching
from reclock.session.database import Database

if TYPE_CHECKING:
    from pathlib import Path


def test_the_last_one_puts_it_back() -> None:
    before, some = sys.getswitchinterval(), Switching()
    some.begin()
    some.begin()
    some.end()
    assert sys.getswitchinterval() == min(before, SECONDS)
    some.end()
    assert sys.getswitchinterval() == before


def test_both_servers_need_it_and_leave_it_as_it_was(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    with Database(tmp_path / "state", ModelEngine(), background=False) as db:
        http = HttpServer(db, HttpOptions(port=0))
        http.start()
        assert sys.getswitchinterval() == min(before, SECONDS)
        with serving(db, Options(port=0)):
            http.close()
            http.close()
            assert sys.getswitchinterval() == min(before, SECONDS)
        assert sys.getswitchinterval() == before

"""The page about PostgreSQL: what it says to a server, and to reclock, runs in its order."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest
from tests.test_sql_blocks import ROOT, Reader

from documents import parts, statements
from engines.local_engine import LocalEngine

from .servers import serving

pytestmark = pytest.mark.postgres
SAID = "host=db.example dbname=bank user=reclock sslmode=verify-full"


class Both(Reader):
    """Says what is for the server to the server, and has the rest find it."""

    def __init__(self, server, home, undo):
        super().__init__(home, undo, LocalEngine())
        self.server, self.upstream = server, server.database()
        self.missed = 0

    def do(self, part):
        if part.kind != "postgres":
            super().do(part)
            return
        for statement in statements(part):
            self.upstream(statement.text)
            if "wal_level" in statement.text:
                self.upstream.session.close()
                self.server.stop(signal.SIGKILL)
                self.server.start()
                self.upstream.session = self.upstream.connect()
                assert self.upstream("SHOW wal_level") == [("logical",)]

    def given(self, text):
        self.missed += "CONNECTION" in text and SAID not in text
        there = f"host={self.upstream.host} dbname={self.upstream.name} user=reclock"
        return super().given(text.replace(SAID, there))

    def close(self):
        self.db.close()
        self.upstream.session.close()


def test_what_the_page_says_is_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "sources-postgres.md").read_text(encoding="utf-8")
    found = [*parts(page)]
    assert {part.kind for part in found} >= {"sql", "postgres"}
    with serving(wal_level=None) as server, ExitStack() as undo:
        reader = Both(server, tmp_path, undo)
        try:
            for part in found:
                reader.do(part)
        finally:
            reader.close()
        assert reader.missed == 0
        if reader.wrong:
            pytest.fail("\n\n".join(reader.wrong), pytrace=False)

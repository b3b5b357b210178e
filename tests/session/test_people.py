"""What people see of a database."""

from __future__ import annotations

import pytest

from engines.model_engine import ModelEngine
from reclock.errors import StateInUse
from reclock.session.database import Database


def test_a_database_says_what_is_in_it(tmp_path):
    with Database(tmp_path / "s", ModelEngine(), background=False) as db:
        assert repr(db) == f"<reclock database in {tmp_path / 's'}: empty>"
        db.execute(
            "CREATE TABLE a (i INT); CREATE TABLE b (i INT); CREATE VIEW v AS SELECT * FROM a"
        )
        db.execute("CREATE INDEX x ON a (i); CREATE INDEX y ON b (i)")
        assert repr(db).endswith(": 2 indexes, 2 tables, 1 view>")
    assert repr(db).endswith("closed>")


def test_opened_twice_says_so(tmp_path):
    with (
        Database(tmp_path / "s", ModelEngine(), background=False),
        pytest.raises(StateInUse, match="open in this process already"),
    ):
        Database(tmp_path / "s", ModelEngine(), background=False)

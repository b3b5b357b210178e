"""VACUUM and ANALYZE have PostgreSQL's tags, and do nothing."""

from __future__ import annotations

import pytest

from reclock.errors import Error


def test_nothing_is_done_and_that_is_said(db):
    db.execute("CREATE TABLE t (a INT)")
    for sql in (
        "VACUUM",
        "VACUUM t",
        "VACUUM FULL FREEZE VERBOSE ANALYZE t (a)",
        "VACUUM (FULL) t",
    ):
        assert db.execute(sql).tag == "VACUUM"
    for sql in ("ANALYZE", "ANALYZE VERBOSE t, t"):
        assert db.execute(sql).tag == "ANALYZE"
    with pytest.raises(Error) as refused:
        db.execute("VACUUM nope")
    assert refused.value.code == "42P01"
    with db.session() as session:
        session.execute("BEGIN; ANALYZE t")
        with pytest.raises(Error) as refused:
            session.execute("VACUUM t")
    assert refused.value.code == "25001"

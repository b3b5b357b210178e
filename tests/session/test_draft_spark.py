"""Transactions whose queries are Spark jobs: the transaction's rows are in them."""

from __future__ import annotations

import pytest

import reclock

pytestmark = pytest.mark.spark


def test_jobs_see_what_the_transaction_did(tmp_path):
    with reclock.open(tmp_path / "state", background=False) as db, db.session() as session:
        db.execute("CREATE TABLE t (k INT PRIMARY KEY, g INT); CREATE TABLE u (k INT, w INT)")
        db.insert("t", [(n, n % 3) for n in range(3_000)])
        db.insert("u", [(n, 1) for n in range(3_000)])
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
        session.execute("BEGIN; DELETE FROM t WHERE g = 0; INSERT INTO t VALUES (9000, 7)")
        session.execute("CREATE TABLE new (k INT, x INT); INSERT INTO new SELECT k, w + 1 FROM u")
        wanted = [(1, 1000), (2, 1000), (7, 1)]
        assert session.execute("SELECT g, n FROM v ORDER BY g").rows == wanted
        joined = "SELECT count(*), sum(new.x) FROM t JOIN new ON t.k = new.k WHERE t.k % 7 < 6"
        before = session.execute(joined).rows
        session.execute("COMMIT")
        assert db.execute("SELECT g, n FROM v ORDER BY g").rows == wanted
        assert db.execute(joined).rows == before
        assert before[0][0] > 1_000
        assert db.check() == []

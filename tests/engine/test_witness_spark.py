"""Rows of errors through Spark: those that the model names, and more than one error of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import reclock
from reclock import ManualClock
from reclock.errors import ExpressionFailed

from .test_witness import QUERIES, SETUP, refused, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.session.database import Database

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("state")
    with reclock.open(path, clock=ManualClock(1), background=False) as opened:
        opened.execute(SETUP)
        yield opened


@pytest.mark.parametrize("name", QUERIES)
def test_queries_and_views_name_a_row(db: Database, name: str) -> None:
    sql, expected = QUERIES[name]
    assert row(refused(db, sql)) == expected
    db.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    try:
        assert row(refused(db, "SELECT * FROM v")) == expected
        rows = db.execute("SELECT detail FROM reclock.errors").rows
        assert any(f"for example where {expected}" in detail for (detail,) in rows)
    finally:
        db.execute("DROP MATERIALIZED VIEW v")


def test_each_error_of_a_view_has_a_row_of_its_own(db: Database) -> None:
    db.execute("CREATE TABLE w (k INT PRIMARY KEY, x INT, note TEXT)")
    db.execute("INSERT INTO w VALUES (1, 5, 'a'), (2, 0, '12'), (3, 0, 'a'), (4, 0, 'b')")
    db.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT k, a + 1 AS b FROM "
        "(SELECT k, note::int AS a FROM w WHERE 1 / (x - k - 1) > -100) AS s WHERE 10 / a > 0"
    )
    db.execute("CREATE MATERIALIZED VIEW q AS SELECT note::int / x AS q FROM w")
    found = db.execute(
        "SELECT code, message, detail FROM reclock.errors WHERE object = 'q' ORDER BY 1, 2"
    ).rows
    assert [(code, detail.rpartition("where ")[2]) for code, _, detail in found] == [
        ("22012", "w.k = 2, w.x = 0, w.note = '12'"),
        ("22P02", "w.k = 1, w.x = 5, w.note = 'a'"),
        ("22P02", "w.k = 4, w.x = 0, w.note = 'b'"),
    ]


def test_an_answer_in_batches_names_a_row(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reclock.spark.peek.SPILLED_ROWS", 0)
    with db.session() as session:
        (parsed,) = session.parsed("SELECT 10 / x FROM t")
        with pytest.raises(ExpressionFailed) as caught:
            session.run(parsed).rows()  # type: ignore[union-attr]
    assert row(caught.value) == "t.k = 2, t.x = 0"

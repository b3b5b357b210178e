"""Random writes do in PostgreSQL what they do here: same answer, same error, same tables.

No statement moves several keys: PostgreSQL refuses a key that is there for a moment, or not, by
the order of its rows.
"""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import Error
from reclock.testing.postgres import running_postgres

pytestmark = pytest.mark.postgres

_SMALL = st.integers(0, 4)
_TABLES = (
    "CREATE TABLE t (k INT PRIMARY KEY, a INT, s VARCHAR(3) DEFAULT 'd')",
    "CREATE TABLE u (k INT, b INT)",
)
_SOURCES = (
    "u",
    "(SELECT k, min(b) AS b FROM u GROUP BY k) AS u",
    "(VALUES (1, 10), (2, 20), (5, 50)) AS u (k, b)",
    "(SELECT g AS k, 7 AS b FROM generate_series(0, 3) AS g) AS u",
)
_ONE_EACH = _SOURCES[1:]
_CONDITIONS = (
    "t.k < {0}", "t.a > {1}", "t.k IN (SELECT k FROM u AS x WHERE x.b <> {0})", "t.a IS NULL",
    "EXISTS (SELECT 1 FROM u AS x WHERE x.k = t.k)", "t.k + {0} > {1}",
)  # fmt: skip
_SETS = (
    "a = {0}", "a = t.a + 1", "s = DEFAULT", "(a, s) = ({0}, 'y')", "k = t.k",
    "(a, s) = (SELECT sum(b), 'q  ' FROM u AS x WHERE x.k = t.k)", "(a) = ROW({1})",
    "a = (SELECT count(*) FROM u AS x)", "s = t.s || 'long'", "a = 10 / (t.k - {0})",
    "a = NULL, s = t.s || 'e'",
)  # fmt: skip
_RETURNING = (
    "", " RETURNING *", " RETURNING k, a", " RETURNING t.k * 2 AS d, s",
    " RETURNING a, (SELECT count(*) FROM t AS y) AS n",
)  # fmt: skip


@st.composite
def statements(draw):  # noqa: PLR0911 - one per kind
    """Draw a statement whose effect does not depend on an order of rows."""

    def text(choices):
        return draw(st.sampled_from(choices)).format(draw(_SMALL), draw(_SMALL))

    def maybe(word, choices):
        return f" {word} {text(choices)}" if draw(st.booleans()) else ""

    def qualified(returning):
        return returning.replace(" k,", " t.k,").replace(" *", " t.*")

    where, returning = maybe("WHERE", _CONDITIONS), text(_RETURNING)
    kind = draw(st.sampled_from(["insert", "conflict", "update", "delete", "merge", "other"]))
    if kind == "insert":
        rows = draw(st.lists(st.tuples(st.integers(0, 9), _SMALL), min_size=1, max_size=3))
        listed = ", ".join(f"({k}, {a})" for k, a in rows)
        return f"INSERT INTO t (k, a) VALUES {listed}{returning}"
    if kind == "conflict":
        rows = draw(st.lists(st.tuples(st.integers(0, 9), _SMALL), min_size=1, max_size=3))
        listed = ", ".join(f"({k}, {a})" for k, a in rows)
        some = "SELECT k, b FROM " + text(_ONE_EACH) + " WHERE k IS NOT NULL"
        given = draw(st.sampled_from([f"VALUES {listed}", some]))
        target = draw(st.sampled_from([" (k)", " ON CONSTRAINT t_pkey"]))
        assigned = text([*_SETS, "a = excluded.a", "a = t.a + excluded.a", "k = excluded.k"])
        does = draw(st.sampled_from(["DO NOTHING", f"DO UPDATE SET {assigned}{where}"]))
        return f"INSERT INTO t (k, a) {given} ON CONFLICT{target} {does}{returning}"
    if kind == "update":
        if draw(st.booleans()):
            return f"UPDATE t SET {text(_SETS)}{where}{returning}"
        join = f"WHERE u.k = t.k{where.replace('WHERE', 'AND')}"
        if draw(st.booleans()):
            some = text(_ONE_EACH)
            return f"UPDATE t SET a = u.b FROM {some} {join}{qualified(returning)}"
        given = f"UPDATE t SET {text(_SETS)} FROM {text(_SOURCES)} {join}"
        return given + qualified(returning)
    if kind == "delete":
        if draw(st.booleans()):
            return f"DELETE FROM t{where}{returning}"
        join = f"WHERE u.k = t.k{where.replace('WHERE', 'AND')}"
        return f"DELETE FROM t USING {text(_SOURCES)} {join}{qualified(returning)}"
    if kind == "merge":
        return draw(merges(text, where, returning))
    return text(
        (
            "INSERT INTO u VALUES ({0}, {1}), ({1}, {0}), ({0}, {1})",
            "UPDATE t SET k = {1} WHERE k = {0} RETURNING k",
            "INSERT INTO t VALUES ({0}, 1) ON CONFLICT (k) DO UPDATE SET k = {1} RETURNING *",
            "DELETE FROM u USING t WHERE u.k = t.k AND u.b < {0} RETURNING u.k, u.b",
            "UPDATE u SET b = u.b + 1 FROM t WHERE t.k = u.k RETURNING u.b",
            "UPDATE u SET b = NULL FROM t, generate_series(1, 2) WHERE t.k >= u.k RETURNING u.*",
            "WITH q AS (SELECT k, min(b) AS b FROM u GROUP BY k) UPDATE t SET a = q.b FROM q"
            " WHERE q.k = t.k AND q.k <> {0} RETURNING t.k, q.b",
            "WITH q AS (SELECT {0} AS k) DELETE FROM t WHERE k IN (SELECT k FROM q) RETURNING *",
            "WITH q AS (SELECT {0} + 10 AS k), r AS (SELECT k + 1 AS k FROM q)"
            " INSERT INTO t SELECT k, {1} FROM r ON CONFLICT DO NOTHING RETURNING *",
            "WITH q AS (SELECT 9 AS n) INSERT INTO u VALUES ((SELECT n FROM q), {0}) RETURNING *",
            "MERGE INTO u USING (VALUES ({0}), ({1}), (7)) AS v (k) ON u.k = v.k"
            " WHEN MATCHED THEN UPDATE SET b = u.b + 1 WHEN NOT MATCHED THEN INSERT VALUES (v.k)",
            "MERGE INTO u USING t ON u.k = t.k WHEN NOT MATCHED BY SOURCE AND b < {0} THEN DELETE"
            " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 0",
        )
    )


@st.composite
def merges(draw, text, where, returning):
    """Draw a MERGE into ``t``."""
    extra = where.replace("WHERE", "AND")
    whens = draw(
        st.permutations(
            [
                f"WHEN MATCHED{extra} THEN UPDATE SET {text(_SETS)}",
                text(["WHEN MATCHED AND u.b > {0} THEN DELETE", "WHEN MATCHED THEN DO NOTHING"]),
                "WHEN NOT MATCHED AND u.b > 5 THEN INSERT (k, a) VALUES (u.k, u.b)",
                "WHEN NOT MATCHED BY TARGET AND u.k IS NULL THEN DO NOTHING",
                text(["WHEN NOT MATCHED BY SOURCE AND t.k = {0} THEN DELETE",
                      "WHEN NOT MATCHED BY SOURCE AND t.a < {0} THEN UPDATE SET a = t.a + 10"]),
            ]
        )
    )  # fmt: skip
    some = " ".join(whens[: draw(st.integers(1, 4))])
    on = draw(st.sampled_from(["u.k = t.k", "u.k = t.k AND t.a <> 2", "t.k = u.k + 1"]))
    given = returning.replace(" k,", " merge_action(), t.k,").replace(" *", " merge_action(), t.*")
    return f"MERGE INTO t USING {text(_SOURCES)} ON {on} {some}{given}"


class Both:
    """Our database and theirs."""

    def __init__(self, db, url):
        self.ours = db
        self.theirs = psycopg.connect(url, autocommit=True)
        for sql in _TABLES:
            self.run(sql)

    def run(self, sql):
        ours, theirs = self._ours(sql), self._theirs(sql)
        assert ours == theirs, sql
        return ours[0] is None

    def _ours(self, sql):
        try:
            result = self.ours.execute(sql)
        except Error as error:
            return error.code, "", []
        return None, result.tag, sorted(map(repr, result.rows))

    def _theirs(self, sql):
        try:
            found = self.theirs.execute(sql)
        except psycopg.Error as error:
            return error.sqlstate, "", []
        rows = found.fetchall() if found.description else []
        return None, found.statusmessage, sorted(map(repr, rows))

    def compare(self):
        for name in ("t", "u"):
            self.run(f"SELECT * FROM {name}")


@pytest.fixture(scope="module")
def both(make_opener):
    with running_postgres() as url:
        found = Both(make_opener()(), url)
        yield found
        found.theirs.close()


def _begin(both, t, u):
    for sql in ("ROLLBACK", "DELETE FROM t", "DELETE FROM u"):
        both.ours.execute(sql)
        both.theirs.execute(sql)
    for k in t:
        both.run(f"INSERT INTO t (k, a) VALUES ({k}, {k % 3})")
    for k, b in u:
        both.run(f"INSERT INTO u VALUES ({k}, {b})")


_ROWS = (
    st.sets(st.integers(0, 5), max_size=4),
    st.lists(st.tuples(_SMALL, _SMALL), max_size=5),
    st.lists(statements(), min_size=1, max_size=5),
)


def check(both, t, u, texts, *, block):
    _begin(both, t, u)
    if block:
        both.run("BEGIN")
    for sql in texts:
        if block:
            both.run("SAVEPOINT s")
        if not both.run(sql) and block:
            both.run("ROLLBACK TO SAVEPOINT s")
        both.compare()
    if block:
        both.run("COMMIT")
        both.compare()


@given(*_ROWS, st.booleans())
@settings(max_examples=25)
def test_writes_are_those_of_postgresql(both, t, u, texts, block):
    check(both, t, u, texts, block=block)


@pytest.mark.slow(seconds=90)
@given(*_ROWS, st.booleans())
@settings(max_examples=250)
def test_many_writes_are_those_of_postgresql(both, t, u, texts, block):
    check(both, t, u, texts, block=block)

"""What is kept of texts changes no answer: any statement, after any change, with it and without."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import Error
from reclock.session import plans as module
from reclock.session.plans import Plans
from reclock.sql.parse import parse_statements
from reclock.sql.plan.build.parameter import Typed
from reclock.sql.types import BIGINT, BOOLEAN, INTEGER, SMALLINT, TEXT, TIMESTAMPTZ

SETUP = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, s TEXT);"
    "CREATE TABLE u (id INT, s TEXT);"
    "CREATE INDEX u_id ON u (id);"
    "CREATE MATERIALIZED VIEW v AS SELECT id, n + 1 AS n, s FROM t;"
    "CREATE VIEW w AS SELECT id, s FROM t WHERE mz_now() <= 5000;"
    "INSERT INTO t VALUES (1, 1, 'a'), (2, NULL, NULL);"
    "INSERT INTO u VALUES (1, 'x'), (1, 'x'), (2, NULL);"
    "CREATE USER joe; GRANT SELECT ON t TO joe"
)
NUMBERS = st.sampled_from([None, -1, 0, 1, 2, 3])
TEXTS = st.sampled_from([None, "", "a", "x"])
READS = [
    ("SELECT * FROM t WHERE id = $1", (BIGINT,)),
    ("SELECT * FROM t WHERE id = $1", (SMALLINT,)),
    ("SELECT s, id FROM t WHERE id = $1 AND n = $2", (INTEGER, INTEGER)),
    ("SELECT * FROM t WHERE id = $1 AND id = $2", (BIGINT, BIGINT)),
    ("SELECT n FROM t WHERE id = 1", ()),
    ("SELECT id FROM t WHERE s = $1", (TEXT,)),
    ("SELECT s FROM u WHERE id = $1", (INTEGER,)),
    ("SELECT * FROM v WHERE id = $1", (BIGINT,)),
    ("SELECT s FROM w WHERE id = $1", (BIGINT,)),
    ("SELECT * FROM t WHERE id = $1 LIMIT $2", (BIGINT, SMALLINT)),
    ("SELECT * FROM t WHERE id = $1 ORDER BY n LIMIT 1", (BIGINT,)),
    ("SELECT * FROM t WHERE $1 IS TRUE AND id = $2", (BOOLEAN, BIGINT)),
    ("SELECT * FROM t WHERE CASE WHEN $1 = 1 THEN id = 1 ELSE id = 2 END", (BIGINT,)),
    ("SELECT current_setting('application_name'), id FROM t WHERE id = $1", (BIGINT,)),
    ("SELECT current_user, id FROM t WHERE id = 1", ()),
    ("SELECT * FROM t WHERE id = $1 AS OF AT LEAST $2", (BIGINT, BIGINT)),
    ("SELECT object FROM reclock.objects WHERE object = $1", (TEXT,)),
    ("SELECT count(*) FROM t WHERE id = $1", (BIGINT,)),
    ("SELECT $1, id FROM t WHERE id = $2", (TEXT, BIGINT)),
]
CHANGES = [
    "INSERT INTO t VALUES (3, 3, 'c')", "DELETE FROM t WHERE id = 1",
    "UPDATE t SET n = 7 WHERE id = 1", "INSERT INTO u VALUES (1, 'y'), (3, '')",
    "DELETE FROM u WHERE s = 'x'", "INSERT INTO t VALUES (1, 2147483647, 'over')",
    "DROP INDEX u_id", "CREATE INDEX u_id ON u (id)",
    "DROP VIEW w; CREATE VIEW w AS SELECT id, s || '!' AS s FROM t",
    "DROP MATERIALIZED VIEW v; CREATE MATERIALIZED VIEW v AS SELECT id, s AS n, n AS s FROM t",
    "DROP TABLE u; CREATE TABLE u (s TEXT, id BIGINT)",
    "GRANT SELECT ON u, v, w TO joe", "REVOKE SELECT ON t FROM joe", "GRANT SELECT ON t TO joe",
    "ALTER ROLE joe SUPERUSER", "DROP ROLE joe; CREATE USER joe",
]  # fmt: skip
OWN = [
    "SET transaction_isolation = 'serializable'", "RESET transaction_isolation",
    "SET application_name = 'x'", "BEGIN", "COMMIT", "ROLLBACK",
]  # fmt: skip


class Forgetful(Plans):
    """Keeps nothing."""

    def known_text(self, sql):
        return None

    def known(self, text, kinds, catalog):
        return None

    def description(self, text, declared, catalog):
        return None

    def may(self, text, role, catalog, roles):
        return False

    def plan(self, text, query, parameters, catalog):
        return module.plan_once(query, parameters, catalog)


def outcome(db, run):
    """Return what a statement gives or why it fails; a transaction that fails is left alone."""
    try:
        found = run()
    except Error as error:
        return type(error), error.code, error.message, error.detail
    return found


@st.composite
def asked(draw):
    text, kinds = draw(st.sampled_from(READS))
    values = []
    for kind in kinds:
        of = {TEXT: TEXTS, BOOLEAN: st.sampled_from([None, True, False])}.get(kind, NUMBERS)
        values.append(Typed(draw(of), kind))
    return text, tuple(values)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_no_answer_changes(make_opener, data):
    opener = make_opener()
    db = opener()
    db.execute(SETUP)
    core, kept, none = db._core, Plans(), Forgetful()
    core.plans = kept
    with db.session() as owner, db.session("joe") as joe:
        for _ in range(data.draw(st.integers(5, 14))):
            session = data.draw(st.sampled_from([owner, joe]))
            kind = data.draw(st.sampled_from(["read", "read", "read", "change", "own", "time"]))
            if kind == "time":
                opener.clock.advance(data.draw(st.sampled_from([1, 5_000])))
                db.tick()  # so that all answers that follow are of about one time
            elif kind == "change":
                outcome(db, lambda: db.execute(data.draw(st.sampled_from(CHANGES))).tag)
            elif kind == "own":
                outcome(db, lambda: session.execute(data.draw(st.sampled_from(OWN))).tag)  # noqa: B023
            else:
                same(db, session, *data.draw(asked()), (kept, none))


def same(db, session, text, values, of):
    """Ask a question in every way, often enough to be known; all must give the same."""
    kept, none = of
    (parsed,) = parse_statements(text)

    def executed():
        result = session.execute(text, values)
        return sorted(result.rows, key=repr), result.columns

    def looked():
        found = session.look_up(parsed, values, patient=True)
        if found is None:
            return executed()
        rows = [tuple(row) for row in found.rows]
        return sorted(rows, key=repr), found.schema.names

    def described():
        return session.describe(parsed, [v.type for v in values])

    db._core.plans = none
    if session.transaction is None:
        expected = outcome(db, described)
        db._core.plans = kept
        assert [outcome(db, described) for _ in range(2)] == [expected] * 2
        db._core.plans = none
    expected = outcome(db, executed)  # in a transaction an error aborts it: then all fail alike
    if session.transaction is not None and session.transaction.aborted:
        return
    db._core.plans = kept
    assert [outcome(db, way) for way in (executed, executed, looked)] == [expected] * 3


def test_a_text_is_planned_once_for_all_values(opener, monkeypatch):
    db = opener()
    db.execute(SETUP)
    planned = []
    plan_query = module.plan_query
    monkeypatch.setattr(
        module, "plan_query", lambda *a, **k: planned.append(1) or plan_query(*a, **k)
    )
    text = "SELECT n FROM t WHERE id = $1"
    for value in (1, 2, 3, 1):
        db.execute(text, (Typed(value, BIGINT),))
    assert len(planned) == 3  # with the first value; with the second, and for all
    db.execute("CREATE TABLE another (x INT)")
    db.execute(text, (Typed(1, BIGINT),))
    assert len(planned) == 4
    planned.clear()
    for _ in range(3):
        db.execute("SELECT s, count(*) FROM t GROUP BY s")
    assert len(planned) == 1


def test_rights_are_looked_up_once_until_they_change(opener, monkeypatch):
    db = opener()
    db.execute(SETUP)
    from reclock.session import session as of  # noqa: PLC0415 - to count calls

    checked = []
    authorize = of.authorize
    monkeypatch.setattr(of, "authorize", lambda *a: checked.append(1) or authorize(*a))
    with db.session("joe") as joe:
        for _ in range(3):
            joe.execute("SELECT n FROM t WHERE id = 1")
        assert len(checked) == 1
        db.execute("REVOKE SELECT ON t FROM joe")
        with pytest.raises(Error, match="permission denied"):
            joe.execute("SELECT n FROM t WHERE id = 1")
        (parsed,) = parse_statements("SELECT n FROM t WHERE id = 1")
        assert joe.look_up(parsed, (), patient=True) is None


def test_what_is_kept_is_bounded_and_holds_no_secret_and_no_old_catalog(opener, monkeypatch):
    monkeypatch.setattr(module, "MOST", 3)
    db = opener()
    db.execute(SETUP)
    kept = db._core.plans = Plans()
    for n in range(9):
        db.execute(f"SELECT {n} FROM t WHERE id = 1")
    assert len(kept._plans._values) == len(kept._parsed._values) == 3
    (known, *_) = kept._plans._values.values()
    assert known.catalog() is not None
    db.execute("CREATE USER eve PASSWORD 'secret'")
    assert not any("secret" in str(key) for key in kept._parsed._values)
    db.execute("CREATE TABLE another (x INT)")
    db.tick()
    gc.collect()
    assert known.catalog() is None


def test_times_as_parameters_are_not_part_of_a_plan(opener):
    db = opener()
    db.execute(SETUP)
    before = db.execute("SELECT 1 FROM t").timestamp
    opener.clock.advance(1_000)
    db.execute("DELETE FROM t WHERE id = 1")
    db.tick()
    text = "SELECT id FROM t WHERE id = $1 AS OF $2"
    now = db.execute("SELECT 1 FROM t").timestamp
    for time, rows in ((before, [(1,)]), (now, []), (before, [(1,)])) * 2:
        given = (Typed(1, BIGINT), Typed(int(time), BIGINT))
        assert db.execute(text, given).rows == rows
    with pytest.raises(Error, match="is not a time"):
        db.execute(text, (Typed(1, BIGINT), Typed(None, TIMESTAMPTZ)))

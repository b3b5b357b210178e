"""COMMENT ON: kept with objects, shown by the catalog, undone with transactions."""

from __future__ import annotations

import pytest

from reclock.errors import Error


def comments(db):
    rows = db.execute(
        "SELECT c.relname, d.objsubid, d.description FROM pg_description AS d"
        " JOIN pg_class AS c ON c.oid = d.objoid WHERE c.relnamespace = 2200 ORDER BY 1, 2"
    ).rows
    return [tuple(row) for row in rows]


def test_comments_are_kept_shown_and_taken_away(opener):
    db = opener()
    db.execute("CREATE TABLE t (a INT, b INT); CREATE VIEW v AS SELECT a FROM t")
    db.execute("CREATE INDEX i ON t (a); CREATE SEQUENCE s")
    for sql in ("TABLE t IS 'it''s'", "COLUMN t.b IS 'bee'", "VIEW v IS 'vue'", "INDEX i IS 'x'",
                "SEQUENCE s IS 'numbers'", "COLUMN public.t.a IS 'gone'"):  # fmt: skip
        assert db.execute(f"COMMENT ON {sql}").tag == "COMMENT"
    db.execute("COMMENT ON COLUMN t.a IS NULL")
    db = opener.reopened(db)
    known = [
        ("i", 0, "x"),
        ("s", 0, "numbers"),
        ("t", 0, "it's"),
        ("t", 2, "bee"),
        ("v", 0, "vue"),
    ]
    assert comments(db) == known
    assert db.execute("SELECT obj_description('t'::regclass, 'pg_class')").rows == [("it's",)]
    db.execute("ALTER TABLE t RENAME b TO c; ALTER TABLE t ADD d INT")
    assert ("t", 2, "bee") in comments(db)
    db.execute("CREATE OR REPLACE VIEW v AS SELECT b AS a FROM (SELECT c AS b FROM t) AS q")
    assert ("v", 0, "vue") in comments(db)
    db.execute("ALTER TABLE t DROP c CASCADE")
    assert [row for row in comments(db) if row[0] == "t"] == [("t", 0, "it's")]


def test_what_is_not_there_or_not_ones_own_has_no_comment(db):
    db.execute("CREATE TABLE t (a INT); CREATE ROLE joe LOGIN; GRANT SELECT ON t TO joe")
    for sql, code in (("COLUMN t.b IS 'x'", "42703"), ("TABLE u IS 'x'", "42P01"),
                      ("VIEW t IS 'x'", "42809"), ("DATABASE d IS 'x'", "0A000")):  # fmt: skip
        with pytest.raises(Error) as refused:
            db.execute(f"COMMENT ON {sql}")
        assert refused.value.code == code
    with db.session("joe") as session, pytest.raises(Error) as refused:
        session.execute("COMMENT ON TABLE t IS 'x'")
    assert refused.value.code == "42501"
    with db.session() as session:
        session.execute("BEGIN; COMMENT ON TABLE t IS 'x'; ROLLBACK")
    assert comments(db) == []

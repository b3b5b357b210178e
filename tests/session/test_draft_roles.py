"""Roles and privileges in transactions: with the rest of it, or not at all."""

from __future__ import annotations

import pytest

from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed


@pytest.fixture
def one(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY); CREATE ROLE joe LOGIN PASSWORD 'j'")
    db.execute("INSERT INTO t VALUES (1)")
    return db.session()


def may(db, role, privilege, name):
    world = db._core.world
    return world.roles.has(role, privilege, world.catalog.find((name,)))


def code(session, statement):
    with pytest.raises(Error) as caught:
        session.execute(statement)
    return caught.value.code


def test_a_new_object_and_its_privileges_come_together(db, one, opener):
    joe = db.session(role="joe")
    one.execute("BEGIN; CREATE MATERIALIZED VIEW v AS SELECT k + 1 AS n FROM t")
    assert one.execute("GRANT SELECT ON v TO joe").tag == "GRANT"
    one.execute("GRANT SELECT ON t TO joe; REVOKE SELECT ON t FROM joe")
    assert code(joe, "SELECT * FROM v") == "42P01"
    version = int(db._core.world.catalog.version)
    one.execute("COMMIT")
    assert joe.execute("SELECT * FROM v").rows == [(2,)]
    assert code(joe, "SELECT * FROM t") == "42501"
    assert int(db._core.world.catalog.version) > version
    again = opener.reopened(db)
    assert again.session(role="joe").execute("SELECT * FROM v").rows == [(2,)]


def test_rolled_back_they_never_were(db, one):
    one.execute("BEGIN; SAVEPOINT s; GRANT SELECT ON t TO joe; ROLLBACK TO s")
    one.execute("CREATE ROLE ann; COMMIT")
    assert not may(db, "joe", "SELECT", "t")
    one.execute("BEGIN; DROP ROLE ann; GRANT SELECT ON t TO joe; ROLLBACK")
    assert db._core.world.roles.find("ann") is not None
    assert not may(db, "joe", "SELECT", "t")


def test_what_it_has_granted_is_in_force_in_it(db, one):
    db.execute("CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a'")
    admin = db.session(role="admin")
    admin.execute("BEGIN; CREATE TABLE own (k INT); ALTER TABLE own OWNER TO joe")
    assert admin.execute("INSERT INTO own VALUES (7)").tag == "INSERT 0 1"
    admin.execute("ALTER ROLE joe SUPERUSER; COMMIT")
    assert db._core.world.catalog.find(("own",)).owner == "joe"
    assert db.session(role="joe").execute("SELECT k FROM own").rows == [(7,)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("GRANT SELECT ON nothing TO joe", "42P01"),
        ("GRANT SELECT ON t TO nobody", "42704"),
        ("CREATE ROLE joe", "42710"),
        ("DROP ROLE public", "42939"),
        ("ALTER TABLE t OWNER TO public", "42704"),
    ],
)
def test_errors_are_those_of_the_statement_and_end_the_transaction(db, one, statement, expected):
    one.execute("BEGIN; INSERT INTO t VALUES (2)")
    assert code(one, statement) == expected
    assert code(one, "SELECT 1") == "25P02"
    one.execute("ROLLBACK")
    assert db.execute("SELECT k FROM t").rows == [(1,)]


def test_rights_are_asked_for_again_when_it_is_run_again(db, one):
    db.execute("GRANT CREATE ON DATABASE reclock TO joe")
    joe = db.session(role="joe")
    joe.execute("BEGIN; CREATE TABLE own (k INT); GRANT SELECT ON own TO public")
    assert code(joe, "GRANT SELECT ON t TO joe") == "42501"
    joe.execute("ROLLBACK; BEGIN; CREATE TABLE own (k INT); GRANT SELECT ON own TO public")
    db.execute("CREATE TABLE other (k INT)")
    joe.execute("COMMIT")
    assert may(db, "public", "SELECT", "own")
    assert not may(db, "public", "SELECT", "other")


@pytest.mark.parametrize(
    "point",
    ["ddl.publish.before", "ddl.publish.after", "durable.commit.before", "durable.commit.after"],
)
@pytest.mark.parametrize("with_rows", [True, False])
def test_a_crash_leaves_all_of_it_or_nothing(db, one, opener, point, with_rows):
    one.execute("BEGIN; GRANT SELECT ON t TO joe; CREATE ROLE ann")
    if with_rows:
        one.execute("INSERT INTO t VALUES (2)")
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        one.execute("COMMIT")
    again = opener.reopened(db)
    found = {
        may(again, "joe", "SELECT", "t"),
        again._core.world.roles.find("ann") is not None,
        *([again.execute("SELECT count(*) FROM t").rows == [(2,)]] if with_rows else []),
    }
    assert len(found) == 1
    assert point.startswith("durable.commit.after") or found == {point == "ddl.publish.after"}
    assert again.check() == []

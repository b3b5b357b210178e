"""What a role makes is its own, from the first moment on and in every state that a crash leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reclock.errors import DependentObjects, Error, Forbidden
from reclock.failpoints import FailpointRaised, armed

if TYPE_CHECKING:
    from reclock.session.database import Database

    from .conftest import Opener

SETUP = """
CREATE TABLE open (a INT, b TEXT); INSERT INTO open VALUES (1, 'x');
CREATE USER joe; CREATE USER ann; CREATE USER boss SUPERUSER;
GRANT CREATE ON DATABASE reclock TO joe, ann; GRANT SELECT ON open TO joe
"""
MAKES = {
    "CREATE TABLE his (a INT)": "INSERT INTO his VALUES (1)",
    "CREATE VIEW his AS SELECT a FROM open": "SELECT * FROM his",
    "CREATE MATERIALIZED VIEW his AS SELECT a FROM open": "SELECT * FROM his",
    "CREATE INDEX his ON open (a)": "DROP INDEX his",
}


@pytest.fixture
def made(db: Database) -> Database:
    db.execute(SETUP)
    return db


def owners(db: Database) -> dict[str, str | None]:
    return dict(db.execute("SELECT name, owner FROM reclock.objects").rows)


@pytest.mark.parametrize("create", MAKES)
@pytest.mark.parametrize(
    "at", ["ddl.publish.before", "durable.commit.before", "durable.commit.after",
           "ddl.publish.after"],
)  # fmt: skip
def test_there_is_no_moment_without_an_owner(opener: Opener, create: str, at: str) -> None:
    db = opener()
    db.execute(SETUP)
    with armed({at: "raise"}), pytest.raises(FailpointRaised):
        db.session("joe").execute(create)
    db = opener.reopened(db)
    if at == "ddl.publish.after":
        assert owners(db)["his"] == "joe"
    if "his" in owners(db):
        db.session("joe").execute(MAKES[create])
    else:
        db.session("joe").execute(create)


@pytest.mark.parametrize("create", MAKES)
def test_creating_is_one_append(made: Database, create: str) -> None:
    version = made._core.world.catalog.version
    made.session("joe").execute(create)
    assert made._core.world.catalog.version == version + 1


def test_what_an_owner_may(made: Database) -> None:
    joe, ann = made.session("joe"), made.session("ann")
    joe.execute("CREATE TABLE his (a INT); INSERT INTO his VALUES (1)")
    joe.execute("UPDATE his SET a = 2; ALTER TABLE his SET (RETAIN HISTORY FOR '1h')")
    joe.execute("CREATE VIEW v AS SELECT a FROM his; CREATE OR REPLACE VIEW v AS SELECT 7 AS a")
    for sql in (
        "SELECT * FROM his", "DROP TABLE his", "DROP TABLE IF EXISTS nothing, his",
        "ALTER TABLE his RESET (RETAIN HISTORY)", "GRANT SELECT ON his TO ann", "DROP VIEW v",
        "CREATE OR REPLACE VIEW v AS SELECT 1 AS a", "ALTER TABLE his OWNER TO ann",
        "REVOKE ALL ON his FROM joe", "DROP TABLE his CASCADE",
    ):  # fmt: skip
        with pytest.raises(Forbidden):
            ann.execute(sql)
    with pytest.raises(Forbidden):
        joe.execute("ALTER TABLE his OWNER TO ann")
    joe.execute("GRANT SELECT ON his TO ann")
    assert ann.execute("SELECT a FROM his").rows == [(2,)]
    joe.execute("REVOKE SELECT ON his FROM ann")
    with pytest.raises(Forbidden):
        ann.execute("SELECT a FROM his")
    joe.execute("DROP VIEW v; DROP TABLE his")
    assert owners(made) == {"open": None}
    for sql, code in (("DROP TABLE nothing", "42P01"), ("DROP VIEW open", "42501")):
        with pytest.raises(Error) as caught:
            joe.execute(sql)
        assert caught.value.code == code


@pytest.mark.parametrize("at", ["durable.commit.before", "durable.commit.after", None])
def test_a_view_that_is_replaced_keeps_owner_and_grants(opener: Opener, at: str | None) -> None:
    db = opener()
    db.execute(SETUP)
    joe = db.session("joe")
    joe.execute("CREATE VIEW v AS SELECT a FROM open; CREATE VIEW w AS SELECT 1 AS a")
    joe.execute("GRANT SELECT ON v TO ann; GRANT SELECT ON w TO public")
    replacing = "CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM open"
    if at is None:
        db.session("boss").execute(replacing)
    else:
        with armed({at: "raise"}), pytest.raises(FailpointRaised):
            db.session("boss").execute(replacing)
    db = opener.reopened(db)
    assert owners(db)["v"] == "joe"
    assert db.session("ann").execute("SELECT a FROM v").rows == [(1 + (at is None),)] or at
    assert db.session("ann").execute("SELECT a FROM w").rows == [(1,)]
    db.execute("CREATE USER bob")
    with pytest.raises(Forbidden):
        db.session("bob").execute("SELECT a FROM v")
    db.session("joe").execute("DROP VIEW v; CREATE VIEW v AS SELECT a FROM open")
    with pytest.raises(Forbidden):
        db.session("ann").execute("SELECT a FROM v")


def test_cascade_takes_nothing_of_others(made: Database) -> None:
    joe, ann = made.session("joe"), made.session("ann")
    joe.execute("CREATE TABLE his (a INT); GRANT SELECT ON his TO ann")
    ann.execute("CREATE INDEX hers_too ON his (a); CREATE VIEW hers AS SELECT a FROM his")
    with pytest.raises(DependentObjects):
        joe.execute("DROP TABLE his")
    with pytest.raises(Forbidden, match="view hers does not belong to joe"):
        joe.execute("DROP TABLE his CASCADE")
    ann.execute("DROP VIEW hers")
    joe.execute("DROP TABLE his")
    assert owners(made) == {"open": None}


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_view_reads_with_its_owners_rights(made: Database, kind: str) -> None:
    joe, ann = made.session("joe"), made.session("ann")
    joe.execute(f"CREATE {kind} v AS SELECT a FROM open; GRANT SELECT ON v TO ann")
    ann.execute("CREATE VIEW w AS SELECT a FROM v")
    made.execute("CREATE VIEW x AS SELECT a FROM w; GRANT SELECT ON x TO public")
    queries = ("SELECT a FROM v", "SELECT a FROM w", "SELECT a FROM x")
    for sql in queries:
        assert ann.execute(sql).rows == [(1,)]
    made.execute("REVOKE SELECT ON open FROM joe")
    for session, queries_ in ((joe, ("SELECT a FROM v",)), (ann, queries)):
        for sql in queries_:
            with pytest.raises(Forbidden) as caught:
                session.execute(sql)
            assert caught.value.hint == "an admin can GRANT SELECT ON open TO joe"
    with pytest.raises(Forbidden):
        ann.subscribe("SUBSCRIBE v")
    assert made.session("boss").execute("SELECT a FROM v").rows == [(1,)]
    made.execute("ALTER ROLE joe SUPERUSER")
    assert ann.execute("SELECT a FROM x").rows == [(1,)]


def test_a_view_of_others_gives_no_rights_back(made: Database) -> None:
    """What two views read is asked for of both owners, whichever is looked at first."""
    joe = made.session("joe")
    joe.execute("CREATE VIEW all_ AS SELECT a FROM open")
    made.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM open")
    made.execute("CREATE VIEW before AS SELECT 1 AS b; GRANT SELECT ON counted TO joe")
    joe.execute("CREATE VIEW both AS SELECT a, n FROM all_, counted")
    made.execute("REVOKE SELECT ON open FROM joe")
    with pytest.raises(Forbidden):
        joe.execute("SELECT * FROM both")


def test_a_view_of_a_private_system_relation(made: Database) -> None:
    joe, ann = made.session("joe"), made.session("ann")
    made.execute("GRANT SELECT ON reclock.errors TO joe")
    joe.execute("CREATE VIEW told AS SELECT message FROM reclock.errors")
    joe.execute("GRANT SELECT ON told TO ann")
    ann.execute("CREATE VIEW again AS SELECT message FROM told")
    assert ann.execute("SELECT * FROM again").rows == []
    made.execute("REVOKE SELECT ON reclock.errors FROM joe")
    for session, sql in ((joe, "SELECT * FROM told"), (ann, "SELECT * FROM again")):
        with pytest.raises(Forbidden) as caught:
            session.execute(sql)
        assert caught.value.hint == "an admin can GRANT SELECT ON reclock.errors TO joe"


def test_objects_change_hands_and_roles_that_own_stay(opener: Opener) -> None:
    db = opener()
    db.execute(SETUP)
    db.session("joe").execute("CREATE TABLE his (a INT)")
    db.session("boss").execute("CREATE TABLE bosss (a INT)")
    for role in ("joe", "boss"):
        with pytest.raises(DependentObjects) as caught:
            db.execute(f"DROP ROLE {role}")
        assert caught.value.code == "2BP01"
    for role in ("public", "nobody"):
        with pytest.raises(Error) as unknown:
            db.execute(f"ALTER TABLE his OWNER TO {role}")
        assert unknown.value.code == "42704"
    db.execute("ALTER TABLE his OWNER TO ann; ALTER TABLE open OWNER TO ann; DROP ROLE joe")
    db = opener.reopened(db)
    assert owners(db) == {"open": "ann", "his": "ann", "bosss": "boss"}
    db.session("ann").execute("DROP TABLE open; DROP TABLE his")


def test_who_was_dropped_makes_nothing(made: Database) -> None:
    joe = made.session("joe")
    made.execute("DROP ROLE joe")
    for create in MAKES:
        with pytest.raises(Forbidden):
            joe.execute(create)


def test_records_of_both_versions(opener: Opener) -> None:
    """What a version before could have written is written as it did, and still read."""
    db = opener()
    db.execute(SETUP)
    db.session("joe").execute("CREATE TABLE his (a INT)")
    records = {r["name"]: r for r in db._core.world.stored.items().values() if "sql" in r}
    assert (records["open"]["v"], "owner" in records["open"]) == (1, False)
    assert (records["his"]["v"], records["his"]["owner"]) == (2, "joe")
    assert json.loads(json.dumps(records)) == records
    db = opener.reopened(db)
    assert owners(db) == {"open": None, "his": "joe"}

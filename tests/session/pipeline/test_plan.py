"""What a file of statements would do, and what is in its way."""

from __future__ import annotations

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.errors import DuplicateName, Fenced, NotSupported
from reclock.session.database import Database
from reclock.session.pipeline.plan import Action, same

FILE = """
ALTER SYSTEM SET timestamp_interval = '500ms';
CREATE TABLE t (a INT PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t;
CREATE INDEX i ON v (s);
"""


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "db", ModelEngine(), clock=ManualClock(1_000), background=False) as db:
        yield db


def apply(db, text):
    steps = db.plan(text)
    for step in steps:
        if step.action in (Action.CREATE, Action.RUN):
            db.execute(step.parsed.text)
    return [step.action for step in steps]


def test_what_is_missing_is_made_and_what_is_there_stays(db):
    run, create, keep, skip = Action.RUN, Action.CREATE, Action.KEEP, Action.SKIP
    assert apply(db, FILE) == [run, create, run, create, create]
    assert apply(db, FILE) == [run, keep, skip, keep, keep]
    assert apply(db, FILE + "CREATE VIEW w AS SELECT * FROM v;")[-1] is create
    assert db.execute("SELECT s FROM w").rows == [(3,)]


def test_roles_are_made_once_and_keep_their_passwords(db):
    text = FILE + "CREATE USER ann PASSWORD 'first'; GRANT SELECT ON v TO ann;"
    steps = db.plan(text)
    db.rehearse(steps)
    assert [step.title for step in steps[-2:]] == ["CREATE ROLE ann", "GRANT SELECT ON v TO ann"]
    assert apply(db, text)[-2:] == [Action.CREATE, Action.RUN]
    db.execute("ALTER USER ann PASSWORD 'second'")
    known = db.roles.find("ann").verifier
    assert apply(db, text)[-2:] == [Action.KEEP, Action.RUN]
    assert db.roles.find("ann").verifier == known
    with pytest.raises(NotSupported, match="a pipeline cannot REVOKE"):
        db.plan("REVOKE SELECT ON v FROM ann")


def test_all_conflicts_are_shown_and_nothing_is_applied(db):
    apply(db, FILE)
    changed = FILE.replace("a INT PRIMARY", "a BIGINT PRIMARY").replace("sum(a)", "max(a)")
    with pytest.raises(DuplicateName, match="2 objects of the file are there otherwise") as error:
        db.plan("CREATE TABLE fresh (a INT);" + changed)
    assert "-CREATE TABLE t (a INT PRIMARY KEY)" in error.value.detail
    assert "+CREATE TABLE t (a BIGINT PRIMARY KEY)" in error.value.detail
    assert "+CREATE MATERIALIZED VIEW v AS SELECT max(a)" in error.value.detail
    assert not db.execute("SELECT name FROM reclock.objects WHERE name = 'fresh'").rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DROP TABLE t", "a pipeline cannot DROP"),
        ("SELECT 1", "a pipeline cannot SELECT"),
        ("CREATE TABLE t AS SELECT 1 AS a", "a pipeline cannot CREATE TABLE … AS"),
        ("BEGIN", "a pipeline cannot BEGIN"),
        ("CREATE TABLE t (a INT); CREATE INDEX ON t (a)", "an index of a pipeline needs a name"),
    ],
)
def test_what_cannot_be_repeated_is_refused(db, text, message):
    with pytest.raises(NotSupported, match=message) as error:
        db.plan(text)
    assert error.value.hint


def test_a_name_twice_is_refused(db):
    with pytest.raises(DuplicateName, match='creates "t" twice'):
        db.plan("CREATE TABLE t (a INT); CREATE VIEW t AS SELECT 1")


@pytest.mark.parametrize(
    ("stored", "given", "is_same"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("p = '***'", "p = 'x'", True),
        ("p = '***', q = 1", "p = 'x', q = 1", True),
        ("p = '***', q = 1", "p = 'x', q = 2", False),
        ("p = '***', q = '***'", "p = 'x', q = 'y'", True),
        ("p = '***'", "q = 'x'", False),
    ],
)
def test_secrets_are_not_compared(stored, given, is_same):
    assert same(stored, given) is is_same


def test_a_rehearsal_finds_what_a_run_would(db):
    db.rehearse(db.plan(FILE))
    assert not db.execute("SELECT name FROM reclock.objects WHERE name = 't'").rows
    wrong = FILE + "CREATE VIEW w AS SELECT nothing FROM v;"
    with pytest.raises(Exception, match="nothing"):
        db.rehearse(db.plan(wrong))
    missing = FILE + "CREATE SOURCE f (a TEXT) FROM FILE 'nowhere.txt' FORMAT TEXT;"
    with pytest.raises(Exception, match="nowhere"):
        db.rehearse(db.plan(missing))
    sink = "CREATE SINK s FROM {} INTO KAFKA BROKER 'b:1' TOPIC 'x' KEY (s) FORMAT JSON"
    db.rehearse(db.plan(FILE + sink.format("v") + " ENVELOPE DEBEZIUM"))
    with pytest.raises(Exception, match="gone"):
        db.rehearse(db.plan(FILE + sink.format("gone") + " ENVELOPE DEBEZIUM"))


def test_a_sink_that_somebody_else_writes_ends_the_process(db, monkeypatch):
    assert db.failure is None

    class Taken:
        failure = Fenced("another instance writes it")

    class One:
        id = "u9"

    monkeypatch.setattr(db._core.exporters, "_exporters", {"u9": Taken()})
    monkeypatch.setattr(type(db._core.world.catalog), "of_kind", lambda *_: (One(),))
    assert db.failure is Taken.failure

"""Settings of the system and of sessions: durable, checked, in force at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from children import Child
from reclock.catalog.settings import SETTINGS, Values
from reclock.config import parse_duration
from reclock.durable.catalog_store import CATALOG
from reclock.durable.store import Append, StoredUpdate
from reclock.errors import Corrupt, Error, NewerFormat
from reclock.failpoints import EXIT_STATUS
from reclock.session.session import Session
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.time.antichain import Antichain

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"
OTHER = {
    "compute_replica_expiration_offset": "20d",
    "execution": "driver",
    "expiration_renewal": "false",
    "idle_in_transaction_session_timeout": "10s",
    "idle_session_timeout": "5m",
    "logical_compaction_window": "5m",
    "statement_timeout": "250ms",
    "timestamp_interval": "20ms",
    "transaction_isolation": "serializable",
}
"""A value of every setting that is not its default."""

WORDS = {"execution", "expiration_renewal", "transaction_isolation"}
"""Those whose values are not durations."""


def shown(db, name):
    ((value,),) = db.execute(f"SHOW {name}").rows
    return value


def everything(db):
    return {name: value for name, value, _ in db.execute("SHOW ALL").rows}


DEFAULTS = {name: setting.default for name, setting in SETTINGS.items()}


def test_every_setting_is_tried_here():
    assert OTHER.keys() == SETTINGS.keys()
    assert all(OTHER[name] != default for name, default in DEFAULTS.items())


@pytest.mark.parametrize("name", SETTINGS)
def test_a_system_setting_is_in_force_for_all_sessions_and_survives(opener, name):
    db = opener()
    other = Session(db._core)
    assert db.execute(f"ALTER SYSTEM SET {name} = '{OTHER[name]}'").tag == "ALTER SYSTEM"
    assert shown(db, name) == OTHER[name]
    assert shown(other, name) == OTHER[name]
    assert everything(db) == DEFAULTS | {name: OTHER[name]}
    again = opener.reopened(db)
    assert everything(again) == DEFAULTS | {name: OTHER[name]}
    again.execute(f"ALTER SYSTEM RESET {name}")
    assert everything(opener.reopened(again)) == DEFAULTS


def test_reset_all_resets_all(opener):
    db = opener()
    for name, value in OTHER.items():
        db.execute(f"ALTER SYSTEM SET {name} TO '{value}'")
    assert everything(db) == OTHER
    db.execute("ALTER SYSTEM RESET ALL")
    assert everything(db) == DEFAULTS
    assert everything(opener.reopened(db)) == DEFAULTS


def test_values_are_kept_as_they_are_shown(db):
    db.execute("ALTER SYSTEM SET statement_timeout = '90 seconds'")
    assert shown(db, "statement_timeout") == "90s"
    db.execute("ALTER SYSTEM SET transaction_isolation = 'Serializable'")
    assert shown(db, "transaction_isolation") == "serializable"
    db.execute("ALTER SYSTEM SET transaction_isolation = DEFAULT")
    assert shown(db, "transaction_isolation") == "strict serializable"


def test_a_change_that_changes_nothing_writes_nothing(db):
    db.execute("ALTER SYSTEM SET timestamp_interval = '2s'")
    version = db._core.world.stored.version
    db.execute("ALTER SYSTEM SET timestamp_interval = '2000 ms'")
    db.execute("ALTER SYSTEM RESET statement_timeout")
    assert db._core.world.stored.version == version
    assert db._core.world.catalog.version == version


def test_a_session_s_own_value_hides_the_system_s_until_it_is_reset(db):
    other = Session(db._core)
    db.execute("SET statement_timeout = '1s'; ALTER SYSTEM SET statement_timeout = '2s'")
    assert (shown(db, "statement_timeout"), shown(other, "statement_timeout")) == ("1s", "2s")
    assert other.settings.statement_timeout == 2.0
    db.execute("RESET statement_timeout")
    assert shown(db, "statement_timeout") == "2s"
    db.execute("ALTER SYSTEM RESET statement_timeout")
    assert shown(db, "statement_timeout") == "60s"


@pytest.mark.parametrize(
    ("statement", "code", "text"),
    [
        ("ALTER SYSTEM SET nothing = '1s'", "42704", "known parameters"),
        ("ALTER SYSTEM RESET nothing", "42704", "known parameters"),
        ("ALTER SYSTEM SET timestamp_intervall = '1s'", "42704", '"timestamp_interval"'),
        ("SHOW timestamp_intervals", "42704", '"timestamp_interval"'),
        ("ALTER SYSTEM SET timestamp_interval = 'soon'", "22023", "'250ms'"),
        ("ALTER SYSTEM SET timestamp_interval = '0'", "22023", "1ms or more"),
        ("ALTER SYSTEM SET timestamp_interval = '0.1 ms'", "22023", "1ms or more"),
        ("ALTER SYSTEM SET timestamp_interval = '36501 days'", "22023", "at most '36500d'"),
        ("ALTER SYSTEM SET statement_timeout = '99999999 weeks'", "22023", "at most '36500d'"),
        ("SET statement_timeout = '99999999 weeks'", "22023", "at most '36500d'"),
        ("ALTER SYSTEM SET transaction_isolation = 'chaos'", "22023", "strict serializable"),
        ("SET transaction_isolation = 'chaos'", "22023", "strict serializable"),
        ("SET timestamp_interval = '1s'", "0A000", "ALTER SYSTEM SET timestamp_interval"),
    ],
)
def test_what_is_not_a_setting_or_a_value_is_refused_and_changes_nothing(db, statement, code, text):
    version = db._core.world.stored.version
    with pytest.raises(Error) as caught:
        db.execute(statement)
    assert caught.value.code == code
    assert text in (caught.value.hint or "")
    assert everything(db) == DEFAULTS
    assert db._core.world.stored.version == version


POINTS = ("durable.append.before", "durable.commit.before", "durable.commit.after",
          "ddl.publish.before", "ddl.publish.after")  # fmt: skip


@pytest.mark.parametrize("restart", [True, False], ids=["crash", "go on"])
@pytest.mark.parametrize("point", POINTS)
def test_a_change_happens_whole_or_not_at_all(opener, point, restart):
    db = opener()
    db.execute("CREATE TABLE t (a INT); ALTER SYSTEM SET statement_timeout = '7s'")
    before = DEFAULTS | {"statement_timeout": "7s"}
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        db.execute("ALTER SYSTEM RESET ALL")
    if restart:
        db = opener.reopened(db)
    else:
        db.execute("SELECT a FROM t")
    assert everything(db) == (DEFAULTS if point.endswith("after") else before)
    db.execute("ALTER SYSTEM SET statement_timeout = '8s'; CREATE TABLE s (a INT)")
    again = opener.reopened(db)
    assert shown(again, "statement_timeout") == "8s"
    assert again.execute("SHOW TABLES").rows == [("s",), ("t",)]


def test_the_longest_durations_work(opener):
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '36500 days'")
    db.execute("ALTER SYSTEM SET statement_timeout = '36500 days'")
    db.execute("CREATE TABLE t (a INT) WITH (RETAIN HISTORY FOR '36500 days')")
    db.execute("INSERT INTO t VALUES (1)")
    assert db.execute("SELECT a FROM t").rows == [(1,)]
    assert db._core.loop.failures == {}


def test_objects_and_settings_share_the_catalog_and_nothing_else(opener):
    db = opener()
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    db.execute("ALTER SYSTEM SET timestamp_interval = '2s'")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS b FROM t")
    db.execute("ALTER SYSTEM RESET timestamp_interval; DROP TABLE t CASCADE")
    db.execute("CREATE TABLE t (b INT)")
    ids = list(db._core.world.catalog.items)
    again = opener.reopened(db)
    assert list(again._core.world.catalog.items) == ids
    assert again.execute("SELECT b FROM t").rows == []


def stored(db, key, record):
    """Write a record into the catalog as another version would."""
    state = db._core.world.stored.contents.state
    text = json.dumps({"key": key, "value": record})
    upper = state.upper.element()
    update = StoredUpdate(text, upper, 1)
    append = Append(CATALOG, (update,), state.upper, Antichain.of(upper.step()))
    assert db._store.append([append]) is None


@pytest.mark.parametrize(
    ("key", "record", "error"),
    [
        ("setting/timestamp_interval", {"v": 2, "kind": "setting", "value": "1s"}, NewerFormat),
        ("setting/colour", {"v": 1, "kind": "setting", "value": "red"}, NewerFormat),
        ("setting/timestamp_interval", {"v": 1, "kind": "setting", "value": "soon"}, Corrupt),
        ("setting/timestamp_interval", {"v": 1, "kind": "setting", "value": 5}, Corrupt),
        ("setting/timestamp_interval", {"v": 1, "kind": "setting"}, Corrupt),
    ],
)
def test_records_of_other_versions_are_refused(opener, key, record, error):
    db = opener()
    stored(db, key, record)
    with pytest.raises(error):
        opener.reopened(db)


def test_the_interval_is_in_force_for_ticks_at_once(opener):
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    db.execute("ALTER SYSTEM SET timestamp_interval = '7s'")
    opener.clock.set(50_001)
    assert db.tick()["EpochMilliseconds"] == 56_001


@given(
    st.lists(
        st.tuples(st.sampled_from([*SETTINGS, None]), st.booleans(), st.integers(1, 10**9)),
        max_size=12,
    )
)
def test_the_records_of_a_change_lead_from_one_to_the_other(changes):
    """Whatever is set and reset: the records applied to the old ones are the new ones."""
    values = Values()
    kept: dict[str, object] = {}
    expected: dict[str, str] = {}
    for name, reset, ms in changes:
        value = None if reset or name is None else f"{ms}ms"
        if name in WORDS and value is not None:
            value = OTHER[name]
        after = values.changed(name, value)
        for key, record in after.records(values).items():
            assert (record is None) == (key in kept and record is None)
            kept.pop(key, None)
            if record is not None:
                kept[key] = record
        values = after
        if name is None:
            expected.clear()
        else:
            expected.pop(name, None)
            if value is not None:
                expected[name] = value
    assert {key.split("/")[1] for key in kept} == expected.keys()
    for name, value in expected.items():
        assert kept[f"setting/{name}"]["value"] == values.get(name)
        if name not in WORDS:
            assert parse_duration(values.get(name)) == parse_duration(value)


def test_the_document_lists_the_settings():
    expected = [
        f"| `{name}` | `{s.default}` | {s.values} | {'yes' if s.session else 'no'} "
        f"| {s.description} |"
        for name, s in SETTINGS.items()
    ]
    actual = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    assert actual == expected, "docs/settings.md should say:\n" + "\n".join(expected)


KILLED = """
from reclock import ManualClock
from reclock.session.database import Database
from reclock.testing.failpoints import arm
from engines.model_engine import ModelEngine

db = Database(path, ModelEngine(), clock=ManualClock(1_000), background=False)
db.execute("ALTER SYSTEM SET timestamp_interval = '3s'")
arm(point, "exit")
db.execute("ALTER SYSTEM SET timestamp_interval = '4s'")
"""


@pytest.mark.parametrize(
    ("point", "value"), [("durable.commit.before", "3s"), ("durable.commit.after", "4s")]
)
def test_a_killed_process_leaves_the_old_value_or_the_new(opener, point, value):
    assert Child(KILLED, path=opener.path, point=point).ended() == EXIT_STATUS
    assert shown(opener(), "timestamp_interval") == value


def test_a_transaction_cannot_change_the_system(db):
    session = Session(db._core)
    session.execute("BEGIN")
    with pytest.raises(Error) as caught:
        session.execute("ALTER SYSTEM SET timestamp_interval = '3s'")
    assert caught.value.hint
    session.execute("ROLLBACK")
    assert everything(db) == DEFAULTS

"""What goes wrong with a real server is an error of its source, with its code; others go on."""

from __future__ import annotations

import logging
import shutil
import signal
import time

import psycopg2
import psycopg2.extras
import pytest
from click.testing import CliRunner

from conditions import assert_facts_agree
from reclock.cli.doctor import doctor
from reclock.errors import Error

from .conftest import SETTINGS
from .servers import Server, restart, serving

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server():
    with serving() as made:
        yield made


@pytest.fixture
def bank(server, opener):
    made = server.database()
    made("CREATE TABLE accounts (id INT PRIMARY KEY, n INT, other INT NOT NULL UNIQUE)")
    made("CREATE TABLE notes (id INT PRIMARY KEY)")
    made("INSERT INTO accounts SELECT i, 0, i FROM generate_series(1, 3) i")
    made("CREATE PUBLICATION p FOR TABLE accounts, notes")
    yield made
    opener.close()
    opener._opened.clear()
    made.session.close()
    made.session = made.connect()
    made.close()


@pytest.fixture
def db(bank, opener):
    db = opener()
    db.execute(f"CREATE SOURCE bank {bank.source()} WITH (RETAIN HISTORY FOR '1 h')")
    db.execute("CREATE TABLE own (n INT)")
    tick(db, opener)
    assert count(db) == 3
    return db


def tick(db, opener, times=1, step=1_000):
    for _ in range(times):
        opener.clock.advance(step)
        db.tick()


def count(db, when=""):
    return db.execute(f"SELECT count(*) FROM accounts {when}").rows[0][0]


def status(db):
    assert_facts_agree(db)
    return db.execute("SELECT state, detail FROM reclock.source_status").rows[0]


def others_go_on(db):
    before = db.execute("SELECT count(*) FROM own").rows[0][0]
    db.execute("INSERT INTO own VALUES (1)")
    assert db.execute("SELECT count(*) FROM own").rows == [(before + 1,)]


def until_running(db, opener):
    for _ in range(200):
        tick(db, opener)
        if status(db)[0] == "running":
            return
        time.sleep(0.05)
    raise AssertionError(status(db))


def failed(db, code):
    """A lasting error: told to readers, and of nobody else; what was bound stays."""
    assert status(db)[0] == "failed"
    with pytest.raises(Error) as caught:
        count(db)
    assert caught.value.code == code
    assert count(db, "AS OF 2000") == 3
    others_go_on(db)
    return caught.value


def idle(bank):
    """Wait until no session reads the slot."""
    for _ in range(200):
        if not bank(
            f"SELECT 1 FROM pg_replication_slots WHERE active AND database = '{bank.name}'"
        ):
            return
        time.sleep(0.02)


def test_the_log_must_be_logical(opener):
    with serving(wal_level="replica") as made:
        bank = made.database()
        bank("CREATE TABLE t (id INT PRIMARY KEY)")
        bank("CREATE PUBLICATION p FOR TABLE t")
        with pytest.raises(Error, match="wal_level") as caught:
            opener().execute(f"CREATE SOURCE s {bank.source()}")
        assert caught.value.code == "55000"
        assert "ALTER SYSTEM SET wal_level" in caught.value.hint
        bank.session.close()


def test_a_password_that_is_wrong_is_said_and_waited_for(server, bank, opener, caplog):
    hba = server.data / "pg_hba.conf"
    before = hba.read_text()
    bank("DROP ROLE IF EXISTS locked")
    bank("CREATE ROLE locked LOGIN REPLICATION PASSWORD 'open sesame'")
    bank("GRANT SELECT ON ALL TABLES IN SCHEMA public TO locked")
    asked = "local all locked scram-sha-256\nlocal replication locked scram-sha-256\n"
    hba.write_text(f"{asked}{before}")
    bank("SELECT pg_reload_conf()")
    db = opener()
    db.execute("CREATE TABLE own (n INT)")
    made = bank.source().replace("user=postgres", "user=locked")
    wrong = made.replace("PUBLICATION", "PASSWORD SECRET 'hunter2' PUBLICATION", 1)
    with caplog.at_level(logging.DEBUG), pytest.raises(Error) as caught:
        db.execute(f"CREATE SOURCE bank {wrong}")
    assert caught.value.code == "28P01"
    told = f"{caught.value} {caught.value.detail} {caught.value.hint} {caplog.text}"
    assert "hunter2" not in told
    with pytest.raises(Error) as caught:
        db.execute(f"CREATE SOURCE bank {made}")  # none given
    assert caught.value.code == "28P01"
    db.execute(f"CREATE SOURCE bank {wrong.replace('hunter2', 'open sesame')}")
    tick(db, opener)
    assert count(db) == 3
    bank("ALTER ROLE locked PASSWORD 'another'")
    bank("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locked'")
    tick(db, opener, 2)
    state, detail = status(db)
    assert state == "stalled"
    assert "password authentication failed" in detail
    assert "open sesame" not in str(db.execute("SELECT * FROM reclock.source_status").rows)
    others_go_on(db)
    bank("ALTER ROLE locked PASSWORD 'open sesame'")
    until_running(db, opener)
    db.execute("DROP SOURCE bank")
    hba.write_text(before)
    bank("SELECT pg_reload_conf()")
    bank("DROP OWNED BY locked; DROP ROLE locked")


def test_a_slot_that_another_reads_is_waited_for(db, bank, opener):
    opener.crash(db)
    idle(bank)
    ((name,),) = bank.slots()
    kind = psycopg2.extras.LogicalReplicationConnection
    thief = psycopg2.connect(bank.connection, connection_factory=kind)
    options = {"proto_version": "1", "publication_names": "p"}
    thief.cursor().start_replication(slot_name=name, options=options)
    db = opener()
    bank("INSERT INTO accounts VALUES (4, 0, 4)")
    tick(db, opener)
    state, detail = status(db)
    assert state == "stalled"
    assert "is active" in detail
    assert db._core.intakes[db._core.world.catalog.find(("bank",)).id].stall.code == "55006"
    others_go_on(db)
    thief.close()
    until_running(db, opener)
    assert count(db) == 4


def test_a_slot_whose_log_was_removed_is_lost(db, bank, opener):
    opener.crash(db)
    idle(bank)
    bank("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    bank("SELECT pg_reload_conf()")
    for _ in range(4):
        bank("CREATE TABLE IF NOT EXISTS noise (n INT); INSERT INTO noise VALUES (1)")
        bank("SELECT pg_switch_wal()")
    bank("CHECKPOINT")
    bank("ALTER SYSTEM RESET max_slot_wal_keep_size")
    bank("SELECT pg_reload_conf()")
    db = opener()
    tick(db, opener, 2)
    error = failed(db, "55000")
    assert "invalidated" in str(error)


def test_a_table_that_is_published_no_more_ends_the_source(db, bank, opener):
    bank("ALTER PUBLICATION p DROP TABLE accounts")
    bank("INSERT INTO accounts VALUES (4, 0, 4)")  # nobody is told
    tick(db, opener, 2, step=10_000)
    error = failed(db, "42P01")
    assert "has no table public.accounts any more" in str(error)


def test_a_publication_that_is_dropped_ends_the_source(db, bank, opener):
    bank("DROP PUBLICATION p")
    tick(db, opener, 2, step=10_000)
    failed(db, "42P01")


def test_rows_that_the_log_cannot_name(db, bank, opener):
    bank("ALTER TABLE notes REPLICA IDENTITY NOTHING")
    bank("INSERT INTO notes VALUES (1)")
    with pytest.raises(psycopg2.Error, match="replica identity"):
        bank("DELETE FROM notes")  # PostgreSQL refuses
    tick(db, opener)
    assert db.execute("SELECT * FROM notes").rows == [(1,)]
    bank("ALTER TABLE accounts REPLICA IDENTITY USING INDEX accounts_other_key")
    bank("UPDATE accounts SET n = 1")
    tick(db, opener, 2)
    assert "another replica identity" in str(failed(db, "55000"))


def examined(state):
    return CliRunner().invoke(doctor, ["--state", str(state)])


def test_a_source_that_failed_keeps_its_slot_and_doctor_says_so(db, bank, opener):
    bank("ALTER TABLE accounts DROP COLUMN n; INSERT INTO accounts VALUES (9, 9)")
    tick(db, opener, 2)
    failed(db, "42703")
    opener.crash(db)
    ((slot,),) = bank.slots()
    result = examined(opener.path)
    assert result.exit_code == 1
    assert f'source "bank" has failed, and its replication slot "{slot}" keeps' in result.output
    assert 'DROP SOURCE "bank"' in result.output
    db = opener()
    db.execute("DROP SOURCE bank")
    assert bank.slots() == []
    opener.crash(db)
    result = examined(opener.path)
    assert "postgres" not in result.output, result.output


def test_a_slot_whose_server_is_away_at_the_drop_is_named(server, db, bank, opener):
    ((slot,),) = bank.slots()
    bank.session.close()
    server.stop(signal.SIGKILL)
    try:
        (notice,) = db.execute("DROP SOURCE bank").notices
        assert f'replication slot "{slot}" is left behind: PostgreSQL does not answer' in notice
        opener.crash(db)
        result = examined(opener.path)
        assert result.exit_code == 1
        said = f'replication slot "{slot}" of source "bank" was left behind: database'
        assert said in result.output
        assert "does not answer" in result.output
    finally:
        server.start()
        bank.session = bank.connect()
    result = examined(opener.path)
    assert said in result.output
    assert "does not answer" not in result.output
    assert f"SELECT pg_drop_replication_slot('{slot}')" in result.output
    opener(background=True)  # which tries it again
    for _ in range(200):
        if not bank.slots():
            break
        time.sleep(0.05)
    assert bank.slots() == []


@pytest.mark.slow(seconds=120)  # a server that stops waits a minute for its reader
def test_a_server_that_is_killed_is_waited_for(server, db, bank, opener):
    bank("INSERT INTO accounts VALUES (4, 0, 4)")
    tick(db, opener)
    for how in (signal.SIGKILL, signal.SIGINT):
        before = count(db)
        bank.session.close()
        server.stop(how)
        tick(db, opener, 2)
        state, detail = status(db)
        assert state == "stalled"
        assert "does not answer" in detail
        others_go_on(db)
        opener.clock.advance(3_600_000)
        tick(db, opener)
        server.start()
        bank.session = bank.connect()
        bank(f"INSERT INTO accounts VALUES ({before + 1}, 0, {before + 1})")
        until_running(db, opener)
        assert count(db) == before + 1
        assert db.execute("SELECT * FROM reclock.errors").rows == []


@pytest.mark.slow(seconds=120)  # a server that stops waits a minute for its reader
def test_a_log_that_went_back_is_another_log(server, db, bank, opener):
    bank.session.close()
    server.stop()
    saved = server.root / "saved"
    shutil.copytree(server.data, saved)
    server.start()
    bank.session = bank.connect()
    bank("INSERT INTO accounts VALUES (4, 0, 4)")
    for _ in range(2):
        bank("SELECT pg_switch_wal()")
    bank("INSERT INTO accounts VALUES (5, 0, 5)")
    until_running(db, opener)
    assert count(db) == 5
    bank.session.close()
    server.stop()
    shutil.rmtree(server.data)
    saved.rename(server.data)
    server.own(server.data)
    server.start()
    bank.session = bank.connect()
    tick(db, opener, 3)
    assert "went back" in str(failed(db, "55000"))


def test_a_standby_is_not_asked(server, db, bank, opener):
    """Where a host has led to a standby, the source waits: the slot is at the primary."""
    mark = server.data / "standby.signal"
    mark.write_text("")
    server.own(mark)
    try:
        restart(server, bank)
        tick(db, opener, 2)
        state, detail = status(db)
        assert state == "stalled"
        assert "is a standby" in detail
        others_go_on(db)
        opener.crash(db)
        db = opener()
        tick(db, opener, 2)
        assert "is a standby" in status(db)[1]
        with pytest.raises(Error, match="a standby server is not supported") as caught:
            db.execute(f"CREATE SOURCE other {bank.source('FOR TABLES (notes AS n)')}")
        assert caught.value.hint == "connect to the primary"
    finally:
        mark.unlink()
        restart(server, bank)
    bank("INSERT INTO accounts VALUES (4, 0, 4)")
    until_running(db, opener)
    assert count(db) == 4


def test_of_several_hosts_the_primary_is_meant(server, bank, opener):
    """The first is a standby."""
    standby = standby_of(server, bank)
    try:
        db = opener()
        db.execute(f"CREATE SOURCE bank {of_both(bank, standby)}")
        tick(db, opener)
        bank("INSERT INTO accounts VALUES (4, 0, 4)")
        tick(db, opener)
        assert count(db) == 4
        assert status(db)[0] == "running"
    finally:
        standby.close()


def standby_of(server, bank):
    """Start a server that follows another, made of its files."""
    root = server.root / "standby"
    root.mkdir()
    bank("CHECKPOINT")
    ignored = shutil.ignore_patterns("postmaster.*", "pg_replslot")
    shutil.copytree(server.data, root / "data", ignore=ignored)
    (root / "data" / "pg_replslot").mkdir()
    (root / "data" / "standby.signal").write_text("")
    with (root / "data" / "postgresql.auto.conf").open("a") as config:
        config.write(f"primary_conninfo = 'host={bank.host} user=postgres'\n")
    server.own(root)
    (root / "data").chmod(0o700)
    standby = Server(f"postgresql://postgres@/postgres?host={root}", SETTINGS)
    standby.program = server.program
    standby.start()
    return standby


def of_both(bank, standby):
    given = bank.connection.replace(f"host={bank.host}", f"host={standby.root},{bank.host}")
    return bank.source().replace(bank.connection, given)


def test_a_standby_that_takes_over_is_another_log(opener):
    """A failover: the slot did not move, and what the standby lacks nothing can tell."""
    with serving() as server:
        bank = server.database()
        bank("CREATE TABLE accounts (id INT PRIMARY KEY)")
        bank("INSERT INTO accounts SELECT generate_series(1, 3)")
        bank("CREATE PUBLICATION p FOR ALL TABLES")
        standby = standby_of(server, bank)
        db = opener()
        db.execute(f"CREATE SOURCE bank {of_both(bank, standby)} WITH (RETAIN HISTORY FOR '1 h')")
        db.execute("CREATE TABLE own (n INT)")
        tick(db, opener)
        try:
            bank("INSERT INTO accounts VALUES (4)")
            tick(db, opener)
            assert count(db) == 4
            bank.session.close()
            server.stop(signal.SIGKILL)
            tick(db, opener, 2)
            assert status(db)[0] == "stalled"  # none of them is a primary
            others_go_on(db)
            there = psycopg2.connect(host=str(standby.root), user="postgres", dbname=bank.name)
            there.autocommit = True
            with there.cursor() as cursor:
                cursor.execute("SELECT pg_promote()")
                cursor.execute("INSERT INTO accounts VALUES (5)")
            there.close()
            tick(db, opener, 3)
            assert "another timeline" in str(failed(db, "55000"))
            db.execute("DROP SOURCE bank")  # whose slot no server has
            db.execute(f"CREATE SOURCE bank {of_both(bank, standby)}")
            tick(db, opener, 2)
            assert db.execute("SELECT max(id) FROM accounts").rows == [(5,)]
        finally:
            opener.close()
            opener._opened.clear()
            standby.close()


@pytest.mark.slow(seconds=120)  # a server that stops waits a minute for its reader
def test_a_switch_of_the_timeline_is_another_log(server, db, bank, opener):
    bank.session.close()
    server.stop()
    signal_file = server.data / "recovery.signal"
    signal_file.write_text("")
    with (server.data / "postgresql.auto.conf").open("a") as config:
        config.write("restore_command = 'false'\n")
    server.own(server.data)
    server.start()
    bank.session = bank.connect()
    for _ in range(200):
        if bank("SELECT pg_is_in_recovery()") == [(False,)]:
            break
        time.sleep(0.05)
    tick(db, opener, 3)
    assert "another timeline" in str(failed(db, "55000"))

"""What goes wrong with a real server is an error of its source, with its code; others go on."""

from __future__ import annotations

import logging
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg2
import psycopg2.extras
import pytest
import trustme

from conditions import assert_facts_agree
from reclock.errors import Error
from reclock.testing.postgres import _account

from .conftest import SETTINGS
from .servers import Server, serving

pytestmark = pytest.mark.postgres
TLS = Path("/usr/lib/postgresql/15/bin")


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


def restart(server, bank):
    bank.session.close()
    server.stop(signal.SIGKILL)
    server.start()
    bank.session = bank.connect()


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
    """The first is a standby, made of the files of the other."""
    root = server.root / "standby"
    root.mkdir()
    bank("CHECKPOINT")
    shutil.copytree(server.data, root / "data", ignore=shutil.ignore_patterns("postmaster.*"))
    (root / "data" / "standby.signal").write_text("")
    server.own(root)
    (root / "data").chmod(0o700)
    standby = Server(f"postgresql://postgres@/postgres?host={root}", SETTINGS)
    standby.program = server.program
    standby.start()
    try:
        given = bank.connection.replace(f"host={bank.host}", f"host={root},{bank.host}")
        db = opener()
        db.execute(f"CREATE SOURCE bank {bank.source().replace(bank.connection, given)}")
        tick(db, opener)
        bank("INSERT INTO accounts VALUES (4, 0, 4)")
        tick(db, opener)
        assert count(db) == 4
        assert status(db)[0] == "running"
    finally:
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


@pytest.mark.skipif(not TLS.exists(), reason="the server of the wheel has no TLS")
def test_tls_is_what_the_mode_asks_for(opener):
    root = Path(tempfile.mkdtemp(prefix="reclock-tls-"))
    authority, stranger = trustme.CA(), trustme.CA()
    made = authority.issue_cert("localhost")
    made.private_key_pem.write_to_path(f"{root}/server.key")
    made.cert_chain_pems[0].write_to_path(f"{root}/server.crt")
    (root / "server.key").chmod(0o600)
    authority.cert_pem.write_to_path(f"{root}/root.crt")
    stranger.cert_pem.write_to_path(f"{root}/stranger.crt")
    account = _account()
    if account:
        for one in (root, *root.iterdir()):
            shutil.chown(one, account["user"], account["group"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **account}
    initdb = [f"{TLS}/initdb", "-D", f"{root}/data", "-U", "postgres", "--auth=trust", "--no-sync"]
    subprocess.run(initdb, check=True, cwd=root, **quiet)
    command = [f"{TLS}/postgres", "-D", f"{root}/data", "-k", f"{root}", "-p", f"{port}"]
    settings = {"ssl": "on", "ssl_cert_file": f"{root}/server.crt", "wal_level": "logical",
                "ssl_key_file": f"{root}/server.key", "fsync": "off",
                "listen_addresses": "127.0.0.1"}  # fmt: skip
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    server = subprocess.Popen(command, cwd=root, **quiet)
    try:
        place = f"port={port} user=postgres dbname=postgres"
        for _ in range(200):
            try:
                session = psycopg2.connect(f"host={root} {place}")
                break
            except psycopg2.OperationalError:
                time.sleep(0.05)
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1);"
                           "CREATE PUBLICATION p FOR TABLE t")  # fmt: skip
        session.close()
        db = opener()

        def create(where):
            db.execute(f"CREATE SOURCE s FROM POSTGRES CONNECTION '{where} {place}' "
                       "PUBLICATION 'p' FOR ALL TABLES")  # fmt: skip

        right, other = f"sslrootcert={root}/root.crt", f"sslrootcert={root}/stranger.crt"
        for bad in (f"host=localhost sslmode=verify-full {other}",
                    f"host=127.0.0.1 sslmode=verify-full {right}"):  # fmt: skip
            with pytest.raises(Error) as caught:
                create(bad)
            assert caught.value.code == "28000"
        for good in (f"host=localhost hostaddr=127.0.0.1 sslmode=verify-full {right}",
                     "host=localhost hostaddr=127.0.0.1 sslmode=require",
                     "host=127.0.0.1 sslmode=disable"):  # fmt: skip
            create(good)
            tick(db, opener)
            assert db.execute("SELECT * FROM t").rows == [(1,)]
            db.execute("DROP SOURCE s")
    finally:
        opener.close()
        opener._opened.clear()
        server.send_signal(signal.SIGINT)
        server.wait(30)
        shutil.rmtree(root)

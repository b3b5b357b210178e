"""A session of replication with a real server: what it is told, and when."""

from __future__ import annotations

import time

import pytest

from reclock.connectors.postgres.connection import Connection
from reclock.connectors.postgres.pgoutput import Change, Commit
from reclock.connectors.postgres.slot import drop, exported, state_of
from reclock.connectors.postgres.stream import Stream
from reclock.errors import SourceUnavailable
from reclock.testing.postgres import running_postgres
from reclock.time.timestamp import Lsn

pytestmark = pytest.mark.postgres

SLOT = "read"


@pytest.fixture(scope="module")
def connection():
    with running_postgres({"wal_level": "logical", "wal_sender_timeout": "2s"}) as url:
        made = Connection(f"host={url.split('host=')[1]} user=postgres dbname=postgres")
        run(made, "CREATE TABLE t (id INT PRIMARY KEY)")
        run(made, "CREATE TABLE other (id INT)")
        run(made, "CREATE PUBLICATION p FOR TABLE t")
        yield made


@pytest.fixture
def begun(connection):
    with exported(connection, SLOT) as made:
        pass
    yield made.lsn
    drop(connection, SLOT)


def run(connection, sql):
    with connection.sql() as session, session.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def end(connection):
    return Lsn.parse(run(connection, "SELECT pg_current_wal_flush_lsn()::text")[0][0])


def confirmed(connection):
    with connection.sql() as session:
        return state_of(session, SLOT).confirmed


def test_what_was_read_is_not_acknowledged(connection, begun):
    before = confirmed(connection)
    run(connection, "INSERT INTO t VALUES (1)")
    stream = Stream(connection, SLOT, "p", begun)
    (commit,) = [m for m in stream.read(end(connection), 5) if isinstance(m, Commit)]
    for _ in range(2):  # on from what was read and is not durable, as after a lost connection
        for n in range(5):
            run(connection, f"INSERT INTO other VALUES ({n})")
            assert list(stream.read(end(connection), 5)) == []
            stream.stay()
        time.sleep(2.5)  # the server asks, and is answered
        assert list(stream.read(end(connection), 0.5)) == []
        assert confirmed(connection) == before
        stream.close()
        stream = Stream(connection, SLOT, "p", Lsn(commit.end))
    stream.acknowledge(Lsn(commit.end))
    run(connection, "INSERT INTO other VALUES (10)")
    assert list(stream.read(end(connection), 5)) == []
    stream.stay()
    for _ in range(100):
        if confirmed(connection) > before:
            break
        time.sleep(0.02)
    assert confirmed(connection) == commit.end
    stream.close()


def test_a_reader_that_is_slow_is_kept(connection, begun):
    stream = Stream(connection, SLOT, "p", begun)
    for n in range(10, 14):
        time.sleep(1)
        stream.stay()
        run(connection, f"INSERT INTO t VALUES ({n})")
    changes = [m for m in stream.read(end(connection), 5) if isinstance(m, Change)]
    assert [change.new for change in changes] == [(b"10",), (b"11",), (b"12",), (b"13",)]
    stream.close()


def test_a_session_that_is_ended_says_why(connection, begun):
    stream = Stream(connection, SLOT, "p", begun)
    run(connection, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
    with pytest.raises(SourceUnavailable) as caught:
        list(stream.read(Lsn(1 << 60), 5))
    assert caught.value.code == "08006"
    stream.close()


def test_a_slot_in_use_is_said_with_its_code(connection, begun):
    stream = Stream(connection, SLOT, "p", begun)
    with pytest.raises(SourceUnavailable) as caught:
        Stream(connection, SLOT, "p", begun)
    assert caught.value.code == "55006"
    stream.close()

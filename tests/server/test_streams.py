"""Rows that are sent while they are taken: slow clients, dead ones, and those who want no more."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql as text

from engines.model_engine import ModelEngine
from reclock.server import connection
from reclock.server.background import serving
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.backend import read_backend
from reclock.server.codec.frames import LIMIT, Frames
from reclock.server.codec.message import frame
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.server.codec.message import Message
    from reclock.server.server import Server

DEADLINE = 60.0
ROWS = 12_000
"""More than the sockets of one connection take, at a thousand bytes each."""

ALL = "SELECT n, s FROM big"


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("streams") / "state", ModelEngine(whole_rows=500))
    with made:
        made.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
        made.execute("CREATE TABLE big (n INT, s TEXT); CREATE TABLE log (n INT)")
        made.insert("big", [(n, "x" * 1_000) for n in range(ROWS)])
        yield made


@pytest.fixture(scope="module")
def server(db: Database) -> Iterator[Server]:
    with serving(db, Options(port=0, trusts_local=True, max_connections=20, grace=1)) as server:
        yield server


@pytest.fixture
def where(server: Server) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": server.port, "user": "me", "dbname": "reclock"}


def holders(db: Database) -> set[str]:
    rows = db.execute("SELECT holder FROM reclock.holds").rows
    return {holder.split("/")[0] for (holder,) in rows}


class Slow:
    """A client that says something, and reads when it likes."""

    def __init__(self, server: Server, *said: Message) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._socket.connect(("127.0.0.1", server.port))
        self._socket.settimeout(DEADLINE)
        self._socket.sendall(f.write_first(f.Startup(3 << 16, (("user", "me"),))))
        self.say(*said)
        self._frames = Frames()
        self._frames.limit = LIMIT

    def say(self, *said: Message) -> None:
        self._socket.sendall(b"".join(map(frame, said)))

    def next(self) -> Message:
        while (message := self._frames.next(read_backend)) is None:
            data = self._socket.recv(1 << 20)
            assert data, "the server has gone"
            self._frames.feed(data)
        return message

    def until(self, kind: type[Message]) -> list[Message]:
        """Read up to a message of a kind."""
        found = [self.next()]
        while not isinstance(found[-1], kind):
            found.append(self.next())
        return found

    def die(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()

    def __enter__(self) -> Slow:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


STREAMS: dict[str, tuple[Message, ...]] = {
    "select": (f.Query(ALL),),
    "copy": (f.Query(f"COPY ({ALL}) TO STDOUT"),),
    "cursor": (f.Query(f"BEGIN; DECLARE c CURSOR FOR {ALL}"), f.Query("FETCH 10 c")),
    "held cursor": (f.Query(f"DECLARE c CURSOR WITH HOLD FOR {ALL}"), f.Query("FETCH 10 c")),
    "fetch all": (f.Query(f"BEGIN; DECLARE c CURSOR FOR {ALL}"), f.Query("FETCH ALL c")),
    "portal": (
        f.Query("BEGIN"), f.Parse("", ALL, ()), f.Bind("", "", (), (), ()), f.Execute("", 10),
        f.Flush(),
    ),
    "subscribe": (f.Query("SUBSCRIBE big"),),
    "copy subscribe": (f.Query("COPY (SUBSCRIBE big) TO STDOUT"),),
}  # fmt: skip


@pytest.mark.parametrize("said", STREAMS.values(), ids=STREAMS)
def test_a_client_that_is_killed_lets_go(
    db: Database, server: Server, said: tuple[Message, ...]
) -> None:
    client = Slow(server, *said)
    until(lambda: bool(holders(db)))
    client.until(b.CopyOutData if "COPY" in str(said) else b.DataRow)
    assert holders(db) & {"select", "subscribe"}
    client.die()
    until(lambda: not holders(db))
    until(lambda: server._sessions == 0)


def test_a_client_is_missed_while_nothing_is_read_from_it(
    db: Database, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LOOK_SECONDS", 0.1)
    client = Slow(server, f.Query("SUBSCRIBE log"), f.CopyData(b"x" * 1_200_000))
    until(lambda: "subscribe" in holders(db))
    until(lambda: any(one._is_paused for _, one in server._keys.values()))
    client.die()
    until(lambda: not holders(db))
    until(lambda: server._sessions == 0)


def test_a_client_that_takes_nothing_loses_its_answer(db: Database, server: Server) -> None:
    """After the timeout of the statement; whoever takes some all the time may take it all."""
    with Slow(server, f.Query("SET statement_timeout = 1500"), f.Query(ALL)) as client:
        client.until(b.ReadyForQuery)
        client.until(b.DataRow)
        until(lambda: not holders(db))
        said = client.until(b.ErrorResponse)
        assert isinstance(said[-1], b.ErrorResponse)
        assert dict(said[-1].parts)["C"] == "57014"
        assert sum(isinstance(m, b.DataRow) for m in said) < ROWS - 1
        client.until(b.ReadyForQuery)
        client.say(f.Query("SELECT 1"))
        assert any(isinstance(m, b.DataRow) for m in client.until(b.ReadyForQuery))


def test_who_leaves_a_portal_open_and_says_nothing_loses_it(db: Database, server: Server) -> None:
    said = (
        f.Query("SET idle_in_transaction_session_timeout = 300"), f.Query("BEGIN"),
        f.Parse("", ALL, ()), f.Bind("", "", (), (), ()), f.Execute("", 10), f.Sync(),
    )  # fmt: skip
    with Slow(server, *said) as client:
        heard = client.until(b.ErrorResponse)
        assert sum(isinstance(m, b.DataRow) for m in heard) == 10
        assert any(isinstance(m, b.PortalSuspended) for m in heard)
        assert isinstance(heard[-1], b.ErrorResponse)
        assert dict(heard[-1].parts)["C"] == "25P03"
        until(lambda: not holders(db))


def test_a_client_that_takes_nothing_can_be_cancelled(db: Database, server: Server) -> None:
    with Slow(server, f.Query(ALL)) as client:
        key = client.until(b.BackendKeyData)[-1]
        client.until(b.DataRow)
        assert isinstance(key, b.BackendKeyData)
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.sendall(f.write_first(f.CancelRequest(key.process, key.key)))
        until(lambda: not holders(db))
        error = client.until(b.ErrorResponse)[-1]
        assert isinstance(error, b.ErrorResponse)
        assert dict(error.parts)["C"] == "57014"


def test_a_server_that_stops_waits_for_no_slow_client(db: Database) -> None:
    with serving(db, Options(port=0, trusts_local=True, grace=0.2)) as server:
        client = Slow(server, f.Query(ALL))
        client.until(b.DataRow)
    assert not holders(db)
    client.die()


def test_slow_clients_block_neither_ticks_nor_others(
    db: Database, server: Server, where: dict[str, Any]
) -> None:
    with Slow(server, f.Query(ALL)) as one, Slow(server, f.Query(f"COPY ({ALL}) TO STDOUT")) as two:
        one.until(b.DataRow)
        two.until(b.CopyOutData)
        with psycopg.connect(**where, autocommit=True) as writer:
            for n in range(3):
                writer.execute("INSERT INTO log VALUES (%s)", (n,))
                assert writer.execute("SELECT max(n) FROM log").fetchone() == (n,)
            writer.execute("DELETE FROM log")
        rows = one.until(b.CommandComplete)
        assert sum(isinstance(m, b.DataRow) for m in rows) == ROWS - 1
        assert sum(isinstance(m, b.CopyOutData) for m in two.until(b.CommandComplete)) == ROWS - 1
    until(lambda: not holders(db))


def test_every_way_of_reading_gives_every_row(db: Database, where: dict[str, Any]) -> None:
    expected = set(range(ROWS))
    with psycopg.connect(**where) as connection:
        stream = connection.cursor().stream(text.SQL(ALL))
        assert {row[0] for row in stream} == expected
        with connection.cursor("named") as cursor:
            cursor.itersize = 1_777
            cursor.execute(ALL)
            assert {row[0] for row in cursor} == expected
        with connection.cursor().copy(f"COPY ({ALL}) TO STDOUT") as copy:
            copy.set_types(["int4", "text"])
            assert {row[0] for row in copy.rows()} == expected
        connection.execute(text.SQL("DECLARE c CURSOR FOR {}").format(text.SQL(ALL)))
        found = [connection.execute("FETCH 5000 c").fetchall() for _ in range(4)]
        assert [len(rows) for rows in found] == [5_000, 5_000, 2_000, 0]
        assert {row[0] for rows in found for row in rows} == expected
    until(lambda: not holders(db))


def test_a_stream_that_is_left_is_over(db: Database, where: dict[str, Any]) -> None:
    with psycopg.connect(**where, autocommit=True) as connection:
        stream = connection.cursor().stream(text.SQL(ALL))
        next(stream)
        assert holders(db) == {"select"}
        stream.close()
        until(lambda: not holders(db))
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_is_streamed_is_of_one_time(db: Database, where: dict[str, Any]) -> None:
    with psycopg.connect(**where, autocommit=True) as connection:
        connection.execute("CREATE TABLE moving (n INT)")
        db.insert("moving", [(n,) for n in range(6_000)])
        stream = connection.cursor().stream(text.SQL("SELECT n FROM moving"))
        first = next(stream)
        db.execute("DELETE FROM moving WHERE n >= 100")
        db.insert("moving", [(-n,) for n in range(1, 2_000)])
        assert {first[0], *(row[0] for row in stream)} == set(range(6_000))
        assert connection.execute("SELECT count(*) FROM moving").fetchone() == (2_099,)
        connection.execute("DROP TABLE moving")


def test_nothing_is_left_behind(db: Database, server: Server, where: dict[str, Any]) -> None:
    """Clients that come, take some and go in every way leave no thread, session or hold."""

    def visit(number: int) -> None:
        with psycopg.connect(**where, autocommit=True) as connection:
            stream = connection.cursor().stream(text.SQL(ALL))
            next(stream)
            if number % 3 == 0:
                connection.cancel_safe()
            if number % 3 == 1:
                connection.pgconn.finish()
            with pytest.raises(psycopg.Error) if number % 3 != 2 else nullcontext():
                for _ in stream:
                    pass

    visit(0)
    until(lambda: server._sessions == 0)
    before = threading.active_count()
    visitors = [threading.Thread(target=visit, args=(number,)) for number in range(6)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join(DEADLINE)
    until(lambda: server._sessions == 0 and not holders(db) and not server._tasks)
    until(lambda: threading.active_count() <= before + len(visitors))  # the pool's own

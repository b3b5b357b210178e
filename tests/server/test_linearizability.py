"""P7 across connections: what clients of a server saw is one history, and it is linearizable.

Clients write two tables in one text or in one transaction, and read both by a view, by two
queries in one text, by a stream of small batches, by a cursor and in a pipeline. Some are
killed in the middle of what they do, and come back: whether their last write happened is not known.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from engines.model_engine import ModelEngine
from model.histories import History, check_linearizable
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS = 4
OPERATIONS = 20
EACH = 1_000_000
TWO = sql.SQL("SELECT n FROM one; SELECT n FROM two")
BOTH = sql.SQL("SELECT n FROM both")


class Client(threading.Thread):
    """Does one thing after the other, and writes down what it saw."""

    def __init__(self, number: int, seed: int, history: History, where: dict[str, Any]) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self._first = number * EACH
        self._choose = random.Random(seed * 31 + number)
        self._history = history
        self._where = where
        self._added = 0
        self.wrong: list[str] = []
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            left = OPERATIONS
            while left:
                with suppress(psycopg.OperationalError), psycopg.connect(**self._where) as known:
                    while left:
                        left -= 1
                        self._act(known)
        except BaseException as error:
            self.failed = error

    def _act(self, known: psycopg.Connection) -> None:
        act = self._choose.choice(
            [self._add_in_one_text, self._add_in_a_transaction, self._read_the_view,
             self._read_in_one_text, self._stream, self._fetch, self._pipeline]
        )  # fmt: skip
        if self._choose.random() < 0.1:
            self._die_soon(known)
        act(known)

    def _die_soon(self, known: psycopg.Connection) -> None:
        """Cut the connection, from outside, at some moment from now on."""
        end = socket.socket(fileno=os.dup(known.fileno()))

        def cut() -> None:
            with end, suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

        threading.Timer(self._choose.random() * 0.02, cut).start()

    def _number(self) -> int:
        self._added += 1
        return self._first + self._added

    def _add_in_one_text(self, known: psycopg.Connection) -> None:
        number = self._number()
        with self._history.recording(self.name, "add", number):
            texts = (sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(t), number)
                     for t in ("one", "two"))  # fmt: skip
            known.execute(sql.SQL("; ").join(texts))

    def _add_in_a_transaction(self, known: psycopg.Connection) -> None:
        number = self._number()
        with self._history.recording(self.name, "add", number), known.transaction():
            known.execute("INSERT INTO one VALUES (%s)", (number,), prepare=True)
            known.execute("INSERT INTO two VALUES (%s)", (number,), binary=True)

    def _read_the_view(self, known: psycopg.Connection) -> None:
        with self._history.recording(self.name, "read") as done:
            rows = known.execute(BOTH, prepare=True).fetchall()
            done.numbers = self._saw([n for (n,) in rows])

    def _read_in_one_text(self, known: psycopg.Connection) -> None:
        with self._history.recording(self.name, "read") as done:
            cursor = known.execute(TWO)
            one = cursor.fetchall()
            assert cursor.nextset()
            done.numbers = self._saw([n for (n,) in [*one, *cursor.fetchall()]])

    def _stream(self, known: psycopg.Connection) -> None:
        with self._history.recording(self.name, "read") as done:
            done.numbers = self._saw([n for (n,) in known.cursor().stream(BOTH)])

    def _fetch(self, known: psycopg.Connection) -> None:
        with self._history.recording(self.name, "read") as done:
            cursor = known.cursor("c")
            try:
                with known.transaction(), cursor:
                    cursor.itersize = 7
                    cursor.execute(BOTH)
                    numbers = [n for (n,) in cursor]
            finally:  # on a connection that is cut it cannot be closed, and would warn
                cursor._closed = True
            done.numbers = self._saw(numbers)

    def _pipeline(self, known: psycopg.Connection) -> None:
        number = self._number()
        with (
            self._history.recording(self.name, "add", number),
            known.pipeline(),
            known.transaction(),
        ):
            known.execute("INSERT INTO one VALUES (%s)", (number,))
            known.execute("INSERT INTO two VALUES (%s)", (number,))
        with self._history.recording(self.name, "read") as done:
            with known.pipeline():
                known.execute(BOTH)
                cursor = known.execute(BOTH)
            done.numbers = self._saw([n for (n,) in cursor.fetchall()])

    def _saw(self, numbers: list[int]) -> frozenset[int]:
        """Every number is in both tables, or in none."""
        numbers = sorted(numbers)
        if numbers[::2] != numbers[1::2]:
            self.wrong.append(f"half a transaction: {numbers}")
        return frozenset(numbers)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "state", ModelEngine(whole_rows=2)) as made:
        made.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
        made.execute("CREATE TABLE one (n BIGINT); CREATE TABLE two (n BIGINT)")
        made.execute(
            "CREATE MATERIALIZED VIEW both AS SELECT n FROM one UNION ALL SELECT n FROM two"
        )
        yield made


def test_histories_of_many_connections_are_linearizable(db: Database) -> None:
    seed = int(os.environ.get("RECLOCK_SEED") or random.randrange(10**6))
    print(f"RECLOCK_SEED={seed} runs this history again")
    history = History()
    with serving(db, Options(port=0, trusts_local=True, grace=1)) as server:
        where = {"host": "127.0.0.1", "port": server.port, "user": "me", "autocommit": True}
        clients = [Client(number, seed, history, where) for number in range(1, CLIENTS + 1)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(120)
        assert not any(client.is_alive() for client in clients)
        last = Client(9, seed, history, where)
        with psycopg.connect(**where) as known:
            last._read_the_view(known)
    assert [client.failed for client in clients if client.failed] == []
    assert [wrong for client in (*clients, last) for wrong in client.wrong] == []
    assert check_linearizable(history) == []
    returned = [operation for operation in history.operations if operation.returned]
    assert len(returned) > CLIENTS * OPERATIONS // 4
    assert len([read for read in history.reads if read.numbers]) > CLIENTS
    assert db.execute("SELECT * FROM reclock.holds").rows == []

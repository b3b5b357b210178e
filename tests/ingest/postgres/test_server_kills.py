"""PostgreSQL is killed and started again while it is read: nothing is lost, nothing is twice.

As test_crash.py, and there it is reclock that dies: a real process follows a bank; at every bound
time the balances are those that the transfers of that time make.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack, suppress

import psycopg2
import pytest

from .servers import restart, serving
from .test_crash import Followed

pytestmark = pytest.mark.postgres

TRANSFER = """
UPDATE accounts SET balance = balance - 1 WHERE id = {one};
UPDATE accounts SET balance = balance + 1 WHERE id = {other};
INSERT INTO transfers (src, dst, amount) VALUES ({one}, {other}, 1)
"""


@pytest.fixture
def follow(tmp_path):
    """Gives a server and a process that follows a bank in it."""
    made = []

    def make(settings=None, **how):
        server = stack.enter_context(serving(**(settings or {})))
        bank = Followed(server.database(), tmp_path / "state", background=True, **how)
        made.append(bank)
        return server, bank

    with ExitStack() as stack:
        yield make
        for bank in made:
            bank.upstream.session.close()
            if bank.child.pipe.closed is False:
                bank.child.kill()


class Load:
    """Transfers, until the block ends, through all kills."""

    def __init__(self, upstream):
        self._upstream, self._over = upstream, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _run(self):
        while not self._over.is_set():
            with suppress(psycopg2.OperationalError, psycopg2.InterfaceError):
                session = psycopg2.connect(self._upstream.connection)
                while not self._over.wait(0.005):
                    one, other = random.sample(range(1, 6), 2)
                    with session.cursor() as cursor:
                        cursor.execute(TRANSFER.format(one=one, other=other))
                    session.commit()
                session.close()


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow(seconds=60))])
def test_a_server_that_is_killed_under_load(follow, kills):
    server, bank = follow()
    bank.ask(bank.create())
    bank.ask("SELECT count(*) FROM accounts")
    with Load(bank.upstream):
        for _ in range(kills):
            time.sleep(0.3 + random.random())
            restart(server, bank.upstream)
            bank.note()
        time.sleep(0.3)
    bank.check()


def test_a_server_that_is_killed_in_the_middle_of_a_copy(follow):
    server, bank = follow(tasks=True)
    bank.upstream("INSERT INTO accounts SELECT i, 0 FROM generate_series(6, 5000) i; ANALYZE")
    bank.child.kill()
    bank.slow = 0.1
    bank.start()
    bank.ask(bank.create())
    named = ("SELECT 1 FROM pg_stat_activity WHERE application_name ~ '^reclock_.* [0-9]+ [0-9]+$' "
             f"AND datname = '{bank.upstream.name}'")  # fmt: skip
    deadline = time.monotonic() + 60
    while not bank.upstream(named):  # a task has read something, and not all
        assert time.monotonic() < deadline
    restart(server, bank.upstream)
    bank.transfer(2)
    bank.upstream("DELETE FROM accounts WHERE id > 5")
    bank.check()


@pytest.mark.parametrize("spill", [1, 64 << 20])
def test_a_server_that_is_killed_in_the_middle_of_a_large_transaction(follow, spill):
    streams = {"debug_logical_replication_streaming": "immediate"}
    server, bank = follow(streams, spill=spill)
    bank.ask(bank.create())
    bank.ask("SELECT count(*) FROM accounts")
    bank.transfer(1)
    other = bank.upstream.connect()
    other.autocommit = False
    with other.cursor() as cursor:  # it is sent before it ends, and never does
        cursor.execute("INSERT INTO transfers (src, dst, amount) SELECT 1, 2, 0 "
                       "FROM generate_series(1, 20000)")  # fmt: skip
        time.sleep(0.3)
        restart(server, bank.upstream)
    other.close()
    bank.transfer(1)
    large = bank.upstream.connect()
    large.autocommit = False
    with large.cursor() as cursor:
        cursor.execute("INSERT INTO transfers (src, dst, amount) SELECT 1, 2, 0 "
                       "FROM generate_series(1, 20000)")  # fmt: skip
        cursor.execute(TRANSFER.format(one=1, other=2))
    large.commit()
    large.close()
    restart(server, bank.upstream)  # it may be half read
    bank.transfer(1)
    bank.check()

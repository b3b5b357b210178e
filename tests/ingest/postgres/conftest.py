"""A real PostgreSQL whose log is logical, and databases in it, each of one test."""

from __future__ import annotations

from itertools import count

import psycopg2
import pytest

from reclock.testing.postgres import running_postgres

_NUMBERS = count()


class Upstream:
    """A database of the server; ``source`` is what follows FROM POSTGRES."""

    def __init__(self, url: str) -> None:
        self.host = url.split("host=")[1]
        self.url = url
        self.name = f"test{next(_NUMBERS)}"
        self._run("postgres", f"CREATE DATABASE {self.name}")
        self.session = self.connect()

    def connect(self):
        made = psycopg2.connect(host=self.host, user="postgres", dbname=self.name)
        made.autocommit = True
        return made

    def _run(self, database, sql):
        session = psycopg2.connect(host=self.host, user="postgres", dbname=database)
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute(sql)
        session.close()

    def __call__(self, sql):
        with self.session.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    @property
    def connection(self):
        return f"host={self.host} user=postgres dbname={self.name}"

    def source(self, tables="FOR ALL TABLES", publication="p"):
        return f"FROM POSTGRES CONNECTION '{self.connection}' PUBLICATION '{publication}' {tables}"

    def slots(self):
        return self(f"SELECT slot_name FROM pg_replication_slots WHERE database = '{self.name}'")

    def close(self):
        if self.session.closed:
            return
        self("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active "
             f"AND database = '{self.name}'")  # fmt: skip
        self("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
             f"WHERE database = '{self.name}' AND NOT active")  # fmt: skip
        self.session.close()


SETTINGS = {"wal_level": "logical", "max_replication_slots": "40", "max_wal_senders": "40"}


@pytest.fixture(scope="module")
def server(request):
    with running_postgres(SETTINGS | getattr(request.module, "SERVER", {})) as url:
        yield url


@pytest.fixture
def upstream(server, opener):
    made = Upstream(server)
    yield made
    opener.close()
    opener._opened.clear()
    made.close()


@pytest.fixture
def make_upstream(server):
    made = []

    def make():
        made.append(Upstream(server))
        return made[-1]

    yield make
    for one in made:
        one.close()

"""A database that ticks, served over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from engines.model_engine import ModelEngine
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

MADE = """
CREATE TABLE accounts (id INT PRIMARY KEY, owner TEXT, balance BIGINT);
CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total, count(*) AS n FROM accounts;
CREATE SOURCE counter FROM LOAD GENERATOR COUNTER (MAX_CARDINALITY 100);
CREATE TABLE secret (word TEXT);
INSERT INTO accounts VALUES (1, 'ann', 100), (2, 'bob', 9007199254740993);
CREATE USER reader PASSWORD 'correct horse';
CREATE USER boss SUPERUSER PASSWORD 'battery staple';
GRANT SELECT ON accounts, total TO reader;
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with Database(tmp_path_factory.mktemp("http") / "state", ModelEngine()) as made:
        made.execute(MADE)
        made.execute("SELECT * FROM total")  # a tick has all of it
        yield made


@pytest.fixture(scope="module")
def server(db: Database) -> Iterator[HttpServer]:
    with HttpServer(db, HttpOptions(port=0)) as made:
        yield made


@pytest.fixture(scope="module")
def trusting(db: Database) -> Iterator[HttpServer]:
    with HttpServer(db, HttpOptions(port=0, trusts_local=True)) as made:
        yield made


@pytest.fixture
def client(trusting: HttpServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=trusting.url, timeout=30) as made:
        yield made


@pytest.fixture
def stranger(server: HttpServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as made:
        yield made


@pytest.fixture
def reader(server: HttpServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30, auth=("reader", "correct horse")) as made:
        yield made

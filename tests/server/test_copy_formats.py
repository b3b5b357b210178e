"""COPY in all formats, beside a real PostgreSQL: the same bytes go out, the same rows come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = "CREATE TABLE t (a INT, b TEXT, c DOUBLE PRECISION, d BOOLEAN, e DATE, f NUMERIC(8,2))"
ROWS = """INSERT INTO t VALUES
    (1, 'plain', 1.5, true, '2026-01-31', 12.50), (2, '', NULL, false, NULL, -0.01),
    (3, 'a,"b"', -1e300, NULL, '1999-12-31', NULL), (4, E'line\\nend\\\\x\\t|', 0, true, NULL, 0),
    (5, NULL, NULL, NULL, NULL, NULL), (6, '\\.', 1, true, NULL, 1), (7, 'é', 2, true, NULL, 2)
"""
FORMATS = [
    "", "CSV", "CSV HEADER", "(FORMAT csv, DELIMITER ';', NULL 'nix')", "(DELIMITER '|', NULL '')",
    "(FORMAT csv, QUOTE '''', ESCAPE '!')", "(FORMAT csv, FORCE_QUOTE (b, d))", "(HEADER)",
    "(FORMAT csv, FORCE_QUOTE *)", "(FORMAT binary)",
]  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[dict[str, Any]]:
    place = tmp_path_factory.mktemp("served") / "state"
    with (
        Database(place, ModelEngine(), background=False) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
    ):
        db.execute(TABLE + "; CREATE TABLE u " + TABLE.removeprefix("CREATE TABLE t "))
        db.execute(ROWS)
        yield {"host": "127.0.0.1", "port": server.port, "user": "me", "dbname": "reclock"}


@pytest.fixture(scope="module")
def ours(served) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**served, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def theirs() -> Iterator[psycopg.Connection]:
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute("CREATE TABLE u (LIKE t)")
        connection.execute(ROWS)
        yield connection


def out(connection, options) -> bytes:
    query = f"COPY (SELECT * FROM t ORDER BY a) TO STDOUT {options}"
    with connection.cursor().copy(query) as copy:
        return b"".join(map(bytes, copy))


@pytest.mark.postgres
@pytest.mark.parametrize("options", FORMATS)
def test_the_same_bytes_go_out_and_come_in(ours, theirs, options):
    wanted = out(theirs, options)
    assert out(ours, options) == wanted
    into = options.replace(", FORCE_QUOTE (b, d)", "").replace(", FORCE_QUOTE *", "")
    found = []
    for connection in (ours, theirs):
        connection.execute("DELETE FROM u")
        with connection.cursor().copy(f"COPY u FROM STDIN {into}") as copy:
            for at in range(0, len(wanted), 11):
                copy.write(wanted[at : at + 11])
        found.append(connection.execute("SELECT * FROM u ORDER BY a").fetchall())
    assert found[0] == found[1]
    assert len(found[0]) == 7

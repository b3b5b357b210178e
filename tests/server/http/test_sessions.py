"""The same sessions as at the PostgreSQL port: what one answers, the other answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from reclock.server.background import serving
from reclock.server.server import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from reclock.session.database import Database

SESSIONS = [
    "SELECT id, owner, balance FROM accounts ORDER BY id",
    "SELECT 1 AS a, NULL::int AS b, 'x' AS c",
    "SELECT 1.50::numeric(5,2) AS n, 7::bigint AS b, true AS t, DATE '2024-02-29' AS d",
    "CREATE TABLE spoken (a INT); INSERT INTO spoken VALUES (1), (2); SELECT * FROM spoken",
    "BEGIN; INSERT INTO spoken VALUES (3); ROLLBACK; SELECT count(*) FROM spoken",
    "BEGIN; UPDATE spoken SET a = a + 10; COMMIT; SELECT sum(a) FROM spoken",
    "INSERT INTO spoken VALUES (5) RETURNING a",
    "DELETE FROM spoken",
    "SHOW timestamp_interval",
    "EXPLAIN SELECT * FROM total",
    "DROP TABLE spoken",
    "",
    "SELEC",
    "SELECT nome FROM accounts",
    "SELECT 1; SELECT nome FROM accounts",
    "SELECT * FROM nothing",
    "SELECT 1/0",
    "SELECT 'x'::int",
    "INSERT INTO accounts VALUES (1, 'again', 1)",
    "INSERT INTO accounts (id) VALUES ('x')",
    "CREATE TABLE accounts (a INT)",
    "BEGIN; SELECT 1/0; SELECT 2",
    "SET nothing = 1",
]


@pytest.fixture(scope="module")
def postgres(db: Database) -> Iterator[dict[str, Any]]:
    with serving(db, Options(port=0, trusts_local=True)) as server:
        yield {"host": "127.0.0.1", "port": server.port, "dbname": "reclock", "user": "boss",
               "password": "battery staple"}  # fmt: skip


def spoken(where: dict[str, Any], text: str) -> tuple[str, Any]:
    """Say something over the PostgreSQL protocol; return the last rows as text, or the error."""
    with psycopg.connect(**where, autocommit=True) as connection:
        connection.adapters.types.clear()
        cursor = psycopg.RawCursor(connection)
        try:
            cursor.execute(text)
        except psycopg.Error as error:
            told = error.diag
            position = None if told.statement_position is None else int(told.statement_position)
            parts = told.sqlstate, told.message_primary, told.message_detail, told.message_hint
            return "error", (*parts, position)
        while cursor.nextset():
            pass
        found = cursor.pgresult
        assert found is not None
        rows = [
            [None if (v := found.get_value(r, c)) is None else v.decode()
             for c in range(found.nfields)]
            for r in range(found.ntuples)
        ]  # fmt: skip
        names = [(found.fname(c) or b"").decode() for c in range(found.nfields)]
        return "rows", (names, rows, (found.command_status or b"").decode())


def asked(client: httpx.Client, text: str) -> tuple[str, Any]:
    """Say the same over HTTP."""
    answer = client.post("/api/sql", json={"query": text}).json()
    if (error := answer.get("error")) is not None:
        return "error", tuple(error[k] for k in ("code", "message", "detail", "hint", "position"))
    rows = [[_text(v) for v in row] for row in answer["rows"]]
    return "rows", ([c["name"] for c in answer["columns"]], rows, answer["tag"])


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "t" if value else "f"
    return None if value is None else str(value)


def test_both_ports_say_the_same(client: httpx.Client, postgres: dict[str, Any]) -> None:
    """All sessions at one port, and then at the other: they leave the state as it was."""
    told: dict[str, list[Any]] = {"http": [], "postgres": []}
    for port in ("http", "postgres"):
        for text in SESSIONS:
            told[port].append(asked(client, text) if port == "http" else spoken(postgres, text))
    for text, one, two in zip(SESSIONS, told["http"], told["postgres"], strict=True):
        assert one == two, text

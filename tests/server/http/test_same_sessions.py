"""The sessions of the PostgreSQL protocol's tests, and the scripts of SQL, at both ports.

Two databases are alike: same statements, same clock. One is asked over HTTP, the other by the
PostgreSQL protocol, text by text, as the tests of that have them: what a test there says in one
call is one session here. Columns, rows, tags and all parts of errors have to be the same. COPY and
SUBSCRIBE are left out, which HTTP has elsewhere or not at all, and what tells of processes.
"""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.server.background import serving
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.server.server import Options
from reclock.session.database import Database
from slt import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[2]
FILES = [
    *sorted((TESTS / "server" / "protocol").glob("test_*.py")),
    *(TESTS / "server" / f"test_{name}.py" for name in ("server", "dml", "tools", "attacks")),
    *sorted((TESTS / "server" / "pg_catalog").glob("test_*.py")),
]
SCRIPTS = sorted((TESTS / "slt").glob("*.slt"))
ELSEWHERE = re.compile(
    r"\b(COPY|SUBSCRIBE|FETCH|pg_stat|pg_backend_pid|pg_sleep|pg_cancel|pg_terminate|LISTEN|"
    r"statement_timeout|session_timeout|now\(\)|timeofday|clock_|uuid|random|version|"
    r"application_name|inet_|postmaster|reclock\.|txid|current_timestamp|localtime)",
    re.IGNORECASE,
)
SAYS = {"Query", "Parse", "execute", "prepare", "asked", "rows"}
MADE = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(12,2));
INSERT INTO t VALUES (1, 'one', 1.50), (2, NULL, 0), (3, 'drei', 3.00);
CREATE TABLE up (k INT PRIMARY KEY, a INT NOT NULL, s TEXT);
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
CREATE USER joe PASSWORD 'one two';
"""


def sessions(path: Path) -> list[str]:
    """Return the texts of a file of tests; those of one call are one."""
    found: list[str] = []

    def visit(node: ast.AST) -> list[str]:
        texts = [text for child in ast.iter_child_nodes(node) for text in visit(child)]
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in SAYS:
                given = [a.value for a in node.args if isinstance(a, ast.Constant)]
                said = [a for a in given if isinstance(a, str) and re.match(r"\s*[A-Za-z]+\s", a)]
                return [*texts, *said[:1]]
        if isinstance(node, ast.Expr | ast.Assign | ast.With | ast.Return) and texts:
            found.append("; ".join(texts))
            return []
        return texts

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return [text for text in dict.fromkeys(found) if not ELSEWHERE.search(text)]


class Ports:
    """Two databases that are alike, each with a port of its own."""

    def __init__(self, place: Path) -> None:
        self._opened: list[Any] = []
        clocks = [ManualClock(1_700_000_000_000) for _ in range(2)]
        self.dbs = [
            self._open(Database(place / f"s{n}", ModelEngine(), clock=clocks[n], background=False))
            for n in range(2)
        ]
        http = self._open(HttpServer(self.dbs[0], HttpOptions(port=0, trusts_local=True)))
        self.http = self._open(httpx.Client(base_url=http.url, timeout=60))
        server = self._open(serving(self.dbs[1], Options(port=0, trusts_local=True)))
        self.where = f"host=127.0.0.1 port={server.port} dbname=reclock user=anybody"

    def _open(self, made: Any) -> Any:
        self._opened.append(made)
        return made.__enter__()

    def close(self) -> None:
        for made in reversed(self._opened):
            made.__exit__(None, None, None)

    def over_http(self, text: str) -> tuple[str, Any]:
        answer = self.http.post("/api/sql", json={"query": text}).json()
        if (error := answer.get("error")) is not None:
            parts = ("code", "message", "detail", "hint", "position")
            return "error", tuple(error[part] for part in parts)
        kinds = [column["type"] for column in answer["columns"]]
        rows = [[shown(v, k) for v, k in zip(r, kinds, strict=True)] for r in answer["rows"]]
        return "rows", ([c["name"] for c in answer["columns"]], ordered(rows), answer["tag"], kinds)

    def over_postgres(self, text: str, kinds: list[str] | None) -> tuple[str, Any]:
        with psycopg.connect(self.where, autocommit=True) as connection:
            cursor = psycopg.RawCursor(connection)
            try:
                cursor.execute(text.encode())
            except psycopg.Error as error:
                told = error.diag
                position = None if told.statement_position is None else int(told.statement_position)
                parts = told.sqlstate, told.message_primary, told.message_detail, told.message_hint
                return "error", (*parts, position)
            while cursor.nextset():
                pass
            found = cursor.pgresult
            assert found is not None
            names = [(found.fname(c) or b"").decode() for c in range(found.nfields)]
            kinds = kinds if kinds is not None and len(kinds) == len(names) else ["text"] * 99
            rows = [
                [read(found.get_value(r, c), kinds[c]) for c in range(found.nfields)]
                for r in range(found.ntuples)
            ]
            return "rows", (names, ordered(rows), (found.command_status or b"").decode(), kinds)

    def compare(self, text: str) -> None:
        """Say a text at both ports, and find the same."""
        http = self.over_http(text)
        if http[0] == "error" and http[1][0] == "XX000":  # the engine of tests cannot do it
            assert self.over_postgres(text, None)[1][0] == "XX000"
            return
        kinds = http[1][3] if http[0] == "rows" else None
        postgres = self.over_postgres(text, kinds)
        assert (http[0], http[1][:3] if kinds is not None else http[1]) == (
            postgres[0], postgres[1][:3] if postgres[0] == "rows" else postgres[1]
        ), text  # fmt: skip


def ordered(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=repr)


def is_nested(kind: str) -> bool:
    return kind.endswith("[]") or kind.startswith(("record", "json")) or "(" in kind[:7]


def shown(value: Any, kind: str) -> Any:
    """Return a value of JSON for comparison."""
    if value is None:
        return None
    if is_nested(kind):
        return "nested"
    if isinstance(value, bool):
        return "t" if value else "f"
    return number(value) if kind in {"real", "double precision"} else str(value)


def number(value: Any) -> float | str:
    """Return a number that equals itself."""
    found = float(value)
    return str(found) if math.isnan(found) else found


def read(value: bytes | None, kind: str) -> Any:
    """Return a value of PostgreSQL's protocol for comparison."""
    if value is None:
        return None
    if is_nested(kind):
        return "nested"
    return number(value) if kind in {"real", "double precision"} else value.decode()


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[Ports]:
    made = Ports(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_sessions_of_the_other_port(ports: Ports, path: Path) -> None:
    for db in ports.dbs:
        db.execute(MADE)
    texts = sessions(path)
    for text in texts:
        ports.compare(text)


def test_there_are_very_many_of_them() -> None:
    found = [text for path in FILES for text in sessions(path)]
    assert len(found) > 90
    assert any(text.count(";") > 2 for text in found)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_of_sql(ports: Ports, path: Path) -> None:
    for block in parse(path.read_text(encoding="utf-8")).blocks:
        ports.compare(block.sql)

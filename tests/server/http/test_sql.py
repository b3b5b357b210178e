"""POST /api/sql: the same statements, rights and errors as at the PostgreSQL port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reclock.server.http.limits import BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from reclock.session.database import Database


def ask(client: httpx.Client, query: str, *params: Any, **more: Any) -> Any:
    body = {"query": query, **({"params": list(params)} if params else {}), **more}
    return client.post("/api/sql", json=body)


def test_columns_have_types_and_rows_are_exact(client: httpx.Client) -> None:
    answer = ask(client, "SELECT id, owner, balance FROM accounts WHERE id <= 2 ORDER BY id")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["columns"] == [
        {"name": "id", "type": "integer"},
        {"name": "owner", "type": "text"},
        {"name": "balance", "type": "bigint"},
    ]
    assert found["rows"] == [[1, "ann", "100"], [2, "bob", "9007199254740993"]]
    assert int(found["timestamp"]) > 1_600_000_000_000
    assert found["tag"] == "SELECT 2"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("1.5::double precision", 1.5),
        ("'NaN'::double precision", "NaN"),
        ("1.50::numeric(5,2)", "1.50"),
        ("NULL::int", None),
        ("'<script>'", "<script>"),
        ("DATE '2024-02-29'", "2024-02-29"),
        ("INTERVAL '1 month 2 days'", "1 mon 2 days"),
        ("ARRAY[1, 2]", [1, 2]),
        ("'{\"a\": [1]}'::json", {"a": [1]}),
        ("'\\xff'::bytea", "\\xff"),
        ("'😀'", "😀"),
    ],
)
def test_values(client: httpx.Client, text: str, value: Any) -> None:
    found = ask(client, f"SELECT {text} AS v").json()
    assert found["rows"] == [[value]], found


def test_parameters_are_read_as_the_statement_needs_them(client: httpx.Client) -> None:
    query = "SELECT owner FROM accounts WHERE id = $1 AND balance = $2"
    assert ask(client, query, 2, "9007199254740993").json()["rows"] == [["bob"]]
    wrong = ask(client, query, 2)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "08P01")


def test_several_statements_are_one_request_and_a_transaction_is_within(
    client: httpx.Client,
) -> None:
    text = "BEGIN; INSERT INTO accounts VALUES (5, 'joe', 1); COMMIT; SELECT 7 AS x"
    assert ask(client, text).json()["rows"] == [[7]]
    assert ask(client, "DELETE FROM accounts WHERE id = 5").json()["tag"] == "DELETE 1"


def test_errors_have_all_their_parts(client: httpx.Client) -> None:
    answer = ask(client, "SELECT ownr FROM accounts")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["position"]) == (400, "42703", 8)
    assert "owner" in error["hint"]
    assert ask(client, "SELECT 1/0").json()["error"]["code"] == "22012"
    assert ask(client, "SELECT * FROM nothing").status_code == 404
    assert ask(client, "SUBSCRIBE accounts").json()["error"]["code"] == "0A000"
    assert ask(client, "COPY accounts TO STDOUT").json()["error"]["code"] == "0A000"


def test_rows_are_limited_and_it_is_said(client: httpx.Client) -> None:
    found = ask(client, "SELECT generate_series FROM generate_series(1, 50)", limit=7).json()
    assert (len(found["rows"]), found["truncated"]) == (7, True)
    found = ask(client, "SELECT generate_series FROM generate_series(1, 7)", limit=7).json()
    assert (len(found["rows"]), found["truncated"]) == (7, False)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"query": 1}', b'{"query": "SELECT 1", "params": 1}', b"[" * 100_000,
     b'{"query": "SELECT 1", "limit": -1}', b'{"query": "SELECT 1", "more": 1}'],
)  # fmt: skip
def test_what_is_no_request_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/api/sql", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] in {"22P02", "22023"}


def test_a_large_body_is_refused_before_it_is_read(client: httpx.Client) -> None:
    body = b'{"query": "' + b" " * BODY_BYTES + b'"}'
    answer = client.post("/api/sql", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "54000")


def test_rights_are_those_of_the_role(reader: httpx.Client) -> None:
    assert ask(reader, "SELECT count(*) FROM accounts").status_code == 200
    for text in ("SELECT * FROM secret", "INSERT INTO accounts VALUES (9, 'x', 1)",
                 "CREATE TABLE mine (a INT)", "SELECT * FROM reclock.errors"):  # fmt: skip
        answer = ask(reader, text)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "42501"), text


@pytest.fixture(scope="module")
def past(db: Database) -> Iterator[int]:
    """A time before the last row of a table, which keeps it."""
    db.execute("CREATE TABLE log (n INT) WITH (retain_history = '10m')")
    first = db.execute("INSERT INTO log VALUES (1)").timestamp
    db.execute("INSERT INTO log VALUES (2)")
    assert first is not None
    yield int(first)
    db.execute("DROP TABLE log")


@pytest.mark.parametrize("text", [
    "SELECT n FROM log", "-- of the past\nSELECT n FROM log;", "SELECT n FROM log -- the end",
    "/* ; */ (SELECT n FROM log)", "SELECT 7; SELECT n FROM log ;",
    "WITH w AS (TABLE log) SELECT * FROM w", "SELECT n FROM log WHERE n = $1",
])  # fmt: skip
def test_a_query_as_of_a_time_gives_the_rows_of_then(
    client: httpx.Client, past: int, text: str
) -> None:
    given = [1] if "$1" in text else []
    answer = ask(client, text, *given, as_of=past)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["rows"], answer.json()["timestamp"]) == ([[1]], str(past))
    assert ask(client, text, *given, as_of=str(past)).json()["rows"] == [[1]]
    assert ask(client, text, *given).json()["rows"] == ([[1]] if given else [[1], [2]])


@pytest.mark.parametrize(("text", "code"), [
    ("INSERT INTO log VALUES (3)", "0A000"), ("SELECT n FROM log; DELETE FROM log", "0A000"),
    ("SELECT n FROM log AS OF 1", "42601"), ("SHOW timestamp_interval", "0A000"),
    ("SELECT relname FROM pg_class", "0A000"),
])  # fmt: skip
def test_what_has_no_past_is_refused_and_nothing_is_done(
    client: httpx.Client, past: int, text: str, code: str
) -> None:
    answer = ask(client, text, as_of=past)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), answer.text
    assert answer.json()["error"]["hint"]
    assert ask(client, "SELECT n FROM log").json()["rows"] == [[1], [2]]


def test_a_time_that_is_not_kept_or_is_none_is_refused(client: httpx.Client, past: int) -> None:
    for as_of in (1, -1, True, 1.5, [], "soon"):
        answer = ask(client, "SELECT n FROM log", as_of=as_of)
        assert answer.status_code == 400, as_of
        assert answer.json()["error"]["code"][:2] == "22", as_of

"""The simple protocol: texts of statements, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import StatementError
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.protocol.portal import row_description
from reclock.server.protocol.report import error_response
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.server.codec.message import Message
    from reclock.session.database import Database

    Talk = Callable[..., list[Message]]


def shape(messages: list[Message]) -> str:
    """Return the letters of messages; what is known of each fits into a test that way."""
    return "".join(message.letter for message in messages)


def values(messages: list[Message]) -> list[tuple[bytes | None, ...]]:
    return [message.values for message in messages if isinstance(message, b.DataRow)]


def tags(messages: list[Message]) -> list[str]:
    return [message.tag for message in messages if isinstance(message, b.CommandComplete)]


def parts(messages: list[Message]) -> dict[str, str]:
    (error,) = (message for message in messages if isinstance(message, b.ErrorResponse))
    return dict(error.parts)


def statuses(messages: list[Message]) -> str:
    return "".join(m.status for m in messages if isinstance(m, b.ReadyForQuery))


def test_a_query(talk: Talk) -> None:
    said = talk(f.Query("SELECT id, name, price FROM t ORDER BY id"), f.Terminate())
    assert shape(said) == "ZTDDDCZ"
    assert values(said) == [
        (b"1", b"one", b"1.50"),
        (b"2", None, b"0.00"),
        (b"3", b"drei", b"3.00"),
    ]
    assert tags(said) == ["SELECT 3"]
    description = said[1]
    assert isinstance(description, b.RowDescription)
    assert [(c.name, c.type, c.size) for c in description.columns] == [
        ("id", 20, 8), ("name", 25, -1), ("price", 1700, -1)
    ]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), [("", "ZIZ"), ("  ; -- nothing\n", "ZIZ")])
def test_no_statement(talk: Talk, sql: str, expected: str) -> None:
    assert shape(talk(f.Query(sql))) == expected


def test_statements_run_in_order_until_one_fails(talk: Talk) -> None:
    said = talk(f.Query("SELECT 1; SELECT 1/0; SELECT 3"), f.Query("SELECT 4"))
    assert shape(said) == "ZTDCEZTDCZ"
    assert values(said) == [(b"1",), (b"4",)]


def test_an_error_has_all_that_is_known(talk: Talk) -> None:
    told = parts(talk(f.Query("SELECT 1; SELECT nome FROM t")))
    assert told["C"] == "42703"
    assert told["S"] == told["V"] == "ERROR"
    assert told["P"] == "18"
    assert "name" in told["H"]
    told = parts(talk(f.Query("INSERT INTO t VALUES (1, 'x', 0)")))
    assert told["C"] == "23505"
    assert told["D"]


def test_transactions_show_in_what_is_ready(talk: Talk) -> None:
    said = talk(
        f.Query("BEGIN"), f.Query("SELECT * FROM t"), f.Query("SELECT 1/0"), f.Query("SELECT 1"),
        f.Query("ROLLBACK"),
    )  # fmt: skip
    assert statuses(said) == "ITTEEI"
    errors = [dict(m.parts)["C"] for m in said if isinstance(m, b.ErrorResponse)]
    assert errors == ["22012", "25P02"]


def test_text_that_is_no_statement_aborts_a_transaction_too(talk: Talk) -> None:
    assert statuses(talk(f.Query("BEGIN"), f.Query("SELEKT"), f.Query("ROLLBACK"))) == "ITEI"


def test_settings_that_change_are_reported(talk: Talk) -> None:
    said = talk(f.Query("SET application_name = 'me'"), f.Query("SELECT 1"))
    assert b.ParameterStatus("application_name", "me") in said
    assert shape(said) == "ZCSZTDCZ"


def test_copy_out(talk: Talk) -> None:
    said = talk(f.Query("COPY (SELECT id, name FROM t ORDER BY id) TO STDOUT"))
    assert shape(said) == "ZHdddcCZ"
    assert said[1] == b.CopyOutResponse(0, (0, 0))
    assert said[2:5] == [b.CopyOutData(s) for s in (b"1\tone\n", b"2\t\\N\n", b"3\tdrei\n")]
    assert tags(said) == ["COPY 3"]


def test_subscribe(talk: Talk) -> None:
    said = talk(f.Query("SUBSCRIBE (SELECT id FROM t WHERE id < 3) UP TO 1000000"))
    assert shape(said)[:4] == "ZTDD"
    assert sorted(row[2] for row in values(said)[:2]) == [b"1", b"2"]


def test_copy_of_what_is_followed(talk: Talk) -> None:
    said = talk(f.Query("COPY (SUBSCRIBE (SELECT 7 AS n)) TO STDOUT"))
    assert shape(said) == "ZHdcCZ"
    assert isinstance(said[2], b.CopyOutData)
    assert said[2].data.endswith(b"\t1\t7\n")


def test_copy_in(db: Database, talk: Talk) -> None:
    db.execute("CREATE TABLE copied (a INT, b TEXT)")
    said = talk(
        f.Query("COPY copied FROM STDIN"), f.CopyData(b"1\tx\n2"), f.Sync(), f.CopyData(b"\ty\n"),
        f.CopyDone(), f.Query("SELECT count(*) FROM copied"),
    )  # fmt: skip
    assert shape(said) == "ZGCZTDCZ"
    assert said[1] == b.CopyInResponse(0, (0, 0))
    assert tags(said)[0] == "COPY 2"
    assert values(said) == [(b"2",)]
    for last, code in ((f.CopyFail("no"), "57014"), (f.CopyData(b"x\n"), "22P04")):
        said = talk(f.Query("COPY copied FROM STDIN"), f.CopyData(b"3\tz\n"), last, f.CopyDone())
        assert parts(said)["C"] == code
        assert shape(said) == "ZGEZ"
    assert parts(talk(f.Query("COPY copied FROM STDIN"), f.Query("SELECT 1")))["C"] == "08P01"
    assert db.execute("SELECT count(*) FROM copied").rows == [(2,)]


def test_more_columns_than_can_be_counted_are_an_error() -> None:
    schema = Schema(tuple(Column(f"c{n}", BIGINT) for n in range(32_768)))
    with pytest.raises(StatementError) as caught:
        row_description(schema, (0,) * 32_768)
    assert caught.value.code == "54011"


def test_messages_of_a_copy_that_failed_are_no_error(talk: Talk) -> None:
    said = talk(f.CopyData(b"x"), f.CopyDone(), f.CopyFail("no"), f.Query("SELECT 1"))
    assert shape(said) == "ZTDCZ"


def test_what_is_skipped_is_a_notice(db: Database, talk: Talk) -> None:
    db.execute("CREATE VIEW there AS SELECT 1 AS a; CREATE INDEX by_name ON t (name)")
    for sql in (
        "CREATE TABLE IF NOT EXISTS t (a INT)",
        "CREATE VIEW IF NOT EXISTS there AS SELECT 2 AS a",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS there AS SELECT 2 AS a",
        "CREATE INDEX IF NOT EXISTS by_name ON t (name)",
        "DROP TABLE IF EXISTS nothing",
    ):
        said = talk(f.Query(sql))
        assert shape(said) == "ZNCZ", sql
        assert isinstance(said[1], b.NoticeResponse)
        assert dict(said[1].parts)["M"].endswith("skipping")
    assert shape(talk(f.Query("CREATE TABLE fresh (a INT); DROP TABLE fresh"))) == "ZCCZ"


def test_a_role_may_what_it_may(db: Database, talk: Talk) -> None:
    db.execute("CREATE USER reader; GRANT SELECT ON t TO reader")
    assert parts(talk(f.Query("DELETE FROM t"), role="reader"))["C"] == "42501"
    assert tags(talk(f.Query("SELECT * FROM t"), role="reader")) == ["SELECT 3"]
    told = parts(talk(f.Parse("", "UPDATE t SET name = $1"), f.Sync(), role="reader"))
    assert told["C"] == "42501"


def test_a_bug_tells_clients_nothing() -> None:
    told = dict(error_response(KeyError("secret")).parts)
    assert told["C"] == "XX000"
    assert "secret" not in str(told)


def test_messages_out_of_place_end_the_conversation(talk: Talk) -> None:
    said = talk(f.AuthenticationReply(b"again"), f.Query("SELECT 1"))
    assert shape(said) == "ZE"
    assert parts(said)["C"] == "08P01"
    assert parts(said)["S"] == "FATAL"


def test_function_calls_are_refused(talk: Talk) -> None:
    said = talk(f.FunctionCall(1, (), (), 0), f.Sync(), f.Query("SELECT 1"))
    assert shape(said) == "ZEZZTDCZ"

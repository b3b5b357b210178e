"""The extended protocol: prepared statements, values, portals, errors until Sync."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.frontend import read_frontend
from reclock.server.protocol.conversation import Conversation
from reclock.server.protocol.wire import Disconnected

from ..conftest import Script, finish  # noqa: TID252 - the fixture's own class

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.server.codec.message import Message
    from reclock.session.database import Database

    Talk = Callable[..., list[Message]]

BY_ID = "SELECT name FROM t WHERE id = $1"
ALL = "SELECT id FROM t ORDER BY id"


def shape(messages: list[Message]) -> str:
    return "".join(message.letter for message in messages)


def values(messages: list[Message]) -> list[tuple[bytes | None, ...]]:
    return [message.values for message in messages if isinstance(message, b.DataRow)]


def code(messages: list[Message]) -> str:
    (error,) = (message for message in messages if isinstance(message, b.ErrorResponse))
    return dict(error.parts)["C"]


def test_prepare_bind_execute(talk: Talk) -> None:
    said = talk(
        f.Parse("", BY_ID), f.Describe("S", ""), f.Bind("", "", (), (b"1",)), f.Describe("P", ""),
        f.Execute(""), f.Sync(),
    )  # fmt: skip
    assert shape(said) == "Z1tT2TDCZ"
    assert b.ParameterDescription((20,)) in said
    assert values(said) == [(b"one",)]


def test_values_and_rows_in_binary(talk: Talk) -> None:
    said = talk(
        f.Parse("q", "SELECT id, price, name FROM t WHERE id = $1", (23,)),
        f.Bind("", "q", (1,), (struct.pack("!i", 3),), (1, 0, 1)), f.Describe("P", ""),
        f.Execute(""), f.Sync(),
    )  # fmt: skip
    assert values(said) == [(struct.pack("!q", 3), b"3.00", b"drei")]
    (description,) = (m for m in said if isinstance(m, b.RowDescription))
    assert [c.format for c in description.columns] == [1, 0, 1]


def test_a_declared_type_is_the_type_of_the_answer(talk: Talk) -> None:
    said = talk(
        f.Parse("", "SELECT $1, $2", (21, 1700)), f.Bind("", "", (), (b"7", b"1.50"), (1, 0)),
        f.Describe("P", ""), f.Execute(""), f.Sync(),
    )  # fmt: skip
    assert values(said) == [(struct.pack("!h", 7), b"1.50")]


def test_null_is_a_value(talk: Talk) -> None:
    said = talk(f.Parse("", "SELECT $1::int IS NULL"), f.Bind("", "", (), (None,)), f.Execute(""))
    assert values(said) == [(b"t",)]


def test_a_statement_that_gives_nothing(db: Database, talk: Talk) -> None:
    db.execute("CREATE TABLE written (a INT)")
    said = talk(
        f.Parse("i", "INSERT INTO written VALUES ($1)"), f.Describe("S", "i"),
        f.Bind("", "i", (), (b"1",)), f.Describe("P", ""), f.Execute(""),
        f.Bind("", "i", (), (b"2",)), f.Execute(""), f.Sync(),
    )  # fmt: skip
    assert shape(said) == "Z1tn2nC2CZ"
    assert db.execute("SELECT a FROM written ORDER BY a").rows == [(1,), (2,)]


def test_portals_give_as_many_rows_as_are_asked_for(talk: Talk) -> None:
    said = talk(
        f.Query("BEGIN"), f.Parse("", ALL), f.Bind("p", ""), f.Execute("p", 2), f.Sync(),
        f.Execute("p", 2), f.Execute("p", 2), f.Close("P", "p"), f.Sync(), f.Query("COMMIT"),
    )  # fmt: skip
    assert shape(said) == "ZCZ12DDsZDCC3ZCZ"
    assert values(said) == [(b"1",), (b"2",), (b"3",)]


def test_portals_end_with_their_transaction(talk: Talk) -> None:
    said = talk(
        f.Parse("", ALL), f.Bind("p", ""), f.Execute("p", 1), f.Sync(), f.Execute("p", 1), f.Sync()
    )
    assert shape(said) == "Z12DsZEZ"
    assert code(said) == "34000"


def test_after_an_error_everything_is_skipped_until_sync(db: Database, talk: Talk) -> None:
    db.execute("CREATE TABLE skipped (a INT)")
    said = talk(
        f.Parse("", "SELECT nothing"), f.Bind("", ""), f.Execute(""),
        f.Parse("", "INSERT INTO skipped VALUES (1)"), f.Bind("", ""), f.Execute(""),
        f.Query("INSERT INTO skipped VALUES (2)"), f.Sync(),
        f.Parse("", "SELECT 1"), f.Bind("", ""), f.Execute(""), f.Sync(),
    )  # fmt: skip
    assert shape(said) == "ZEZ12DCZ"
    assert db.execute("SELECT * FROM skipped").rows == []


def test_statements_are_forgotten_when_closed(talk: Talk) -> None:
    said = talk(
        f.Parse("a", ALL), f.Close("S", "a"), f.Close("S", "never"), f.Bind("", "a"), f.Sync()
    )
    assert shape(said) == "Z133EZ"
    assert code(said) == "26000"


def test_an_empty_statement(talk: Talk) -> None:
    said = talk(
        f.Parse("", ""), f.Describe("S", ""), f.Bind("", ""), f.Describe("P", ""), f.Execute(""),
        f.Sync(),
    )  # fmt: skip
    assert shape(said) == "Z1tn2nIZ"


def test_flush_is_not_sync(talk: Talk) -> None:
    assert shape(talk(f.Parse("", ALL), f.Flush())) == "Z1"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((f.Parse("a", ALL), f.Parse("a", ALL)), "42P05"),
        ((f.Parse("", ALL), f.Bind("p", ""), f.Bind("p", "")), "42P03"),
        ((f.Parse("", "SELECT 1; SELECT 2"),), "42601"),
        ((f.Parse("", "SELECT $1", (600,)),), "0A000"),
        ((f.Parse("", BY_ID), f.Bind("", "", (), (b"x",))), "22P02"),
        ((f.Parse("", BY_ID), f.Bind("", "", (1,), (b"x",))), "22P03"),
        ((f.Parse("", BY_ID), f.Bind("", "", (), (b"\xff",))), "22021"),
        ((f.Execute("never"),), "34000"),
        ((f.Describe("P", "never"),), "34000"),
        ((f.Describe("S", "never"),), "26000"),
    ],
)
def test_what_is_refused(talk: Talk, messages: tuple[Message, ...], expected: str) -> None:
    said = talk(*messages, f.Sync(), f.Query("SELECT 1"))
    assert code(said) == expected
    assert shape(said).endswith("EZTDCZ")


@pytest.mark.parametrize(
    "messages",
    [
        (f.Parse("", BY_ID), f.Bind("", "")),
        (f.Parse("", BY_ID), f.Bind("", "", (0, 0), (b"1",))),
        (f.Parse("", BY_ID), f.Bind("", "", (7,), (b"1",))),
        (f.Parse("", ALL), f.Bind("", "", (), (), (1, 1))),
        (f.Describe("X", ""),),
        (f.Close("X", ""),),
        (read_frontend("B", b"\0\0\0"),),
        (read_frontend("P", b"\0SELECT '\xff'\0\0\0"),),
        (read_frontend("Q", b"SELECT '\xff'\0"),),
        (f.FunctionCall(1, (), (), 0),),
    ],
)
def test_what_cannot_be_done_is_an_error_and_no_more(
    talk: Talk, messages: tuple[Message, ...]
) -> None:
    said = talk(*messages, f.Sync(), f.Query("SELECT 1"))
    assert code(said) in {"08P01", "22021", "0A000"}
    assert shape(said).endswith("ZTDCZ")


def test_what_gives_no_rows_is_not_done_twice(db: Database, talk: Talk) -> None:
    db.execute("CREATE TABLE once (a INT)")
    insert = f.Parse("", "INSERT INTO once VALUES (1)")
    said = talk(insert, f.Bind("", ""), f.Execute(""), f.Execute(""), f.Sync())
    assert code(said) == "55000"
    assert db.execute("SELECT count(*) FROM once").rows == [(1,)]
    said = talk(f.Parse("", ALL), f.Bind("", ""), f.Execute("", -1), f.Execute(""), f.Sync())
    assert [m.tag for m in said if isinstance(m, b.CommandComplete)] == ["SELECT 3", "SELECT 0"]


def test_jsonb_has_a_version_in_front(talk: Talk) -> None:
    prepare = f.Parse("", "SELECT $1, $2::text", (3802,))
    bind = f.Bind("", "", (1, 0), (b'\x01{"a": 1}', b"x"))
    assert values(talk(prepare, bind, f.Execute(""), f.Sync())) == [(b'{"a": 1}', b"x")]


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("value", [b"a\0b", b"\xff"])
def test_no_text_has_a_zero_byte(talk: Talk, value: bytes, form: int) -> None:
    prepare = f.Parse("", "SELECT $1::text")
    said = talk(prepare, f.Bind("", "", (form,), (value,)), f.Execute(""), f.Sync())
    assert code(said) == "22021"


def test_rows_are_as_they_were_described(db: Database, talk: Talk) -> None:
    db.execute("CREATE VIEW moving AS SELECT 1 AS a")

    def change(_: object) -> Message:
        db.execute("DROP VIEW moving; CREATE VIEW moving AS SELECT 'x' AS a, 2 AS b")
        return f.Bind("", "s")

    said = talk(f.Parse("s", "SELECT * FROM moving"), change, f.Execute(""), f.Sync())
    assert code(said) == "0A000"


def test_a_look_up_that_is_known_is_answered_without_a_thread(db: Database) -> None:
    """Prepared once and executed, prepared again each time, or as text: no hand-over."""
    by_id, text = "SELECT name, id FROM t WHERE id = $1", "SELECT name FROM t WHERE id = 3"
    work: list[object] = []

    def said(*messages: Message) -> list[Message]:
        script = Script(*messages)

        async def counted(job: Callable[[], object], alarm: object = None) -> object:
            work.append(job)
            return job()

        script.work = counted  # type: ignore[method-assign]
        with db.session() as session, suppress(Disconnected):
            finish(Conversation(script, session, script.bugs.append).run())
        return script.said

    def look(value: bytes | None, *formats: int) -> tuple[Message, ...]:
        return (
            f.Bind("", "", (), (value,), formats), f.Describe("P", ""), f.Execute(""), f.Sync(),
        )  # fmt: skip

    prepare = f.Parse("", by_id)
    first = said(prepare, *look(b"1"), *look(b"2"), f.Query(text), f.Query(text))
    work.clear()
    again = said(prepare, *look(b"1"), *look(b"2"), f.Query(text), f.Query(text))
    assert again == first
    assert work == []
    assert values(again) == [(b"one", b"1"), (None, b"2"), (b"drei",), (b"drei",)]
    binary = said(prepare, *look(b"1", 1), *look(b"9"))
    assert values(binary) == [(b"one", struct.pack("!q", 1))]
    assert work == []
    assert values(said(prepare, *look(None))) == []  # NULL equals nothing
    assert work


def test_a_known_look_up_is_over_after_it(talk: Talk) -> None:
    for _ in range(3):
        said = talk(
            f.Parse("", BY_ID), f.Bind("", "", (), (b"1",)), f.Execute(""), f.Execute(""), f.Sync(),
        )  # fmt: skip
        assert shape(said) == "Z12DCCZ"
    limited = talk(f.Parse("", BY_ID), f.Bind("", "", (), (b"1",)), f.Execute("", 1), f.Sync())
    assert shape(limited) == "Z12DsZ"

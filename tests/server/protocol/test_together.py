"""Several statements in one text: what is one transaction, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.protocol.together import stretches
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.server.codec.message import Message
    from reclock.session.database import Database

    Talk = Callable[..., list[Message]]


@pytest.fixture
def made(db: Database) -> Iterator[Database]:
    db.execute("CREATE TABLE a (n INT PRIMARY KEY); CREATE TABLE b (n INT)")
    yield db
    db.execute("DROP TABLE a; DROP TABLE b; DROP TABLE IF EXISTS c")


def rows(db: Database, table: str) -> list[int]:
    return [n for (n,) in db.execute(f"SELECT n FROM {table} ORDER BY n").rows]


def said(messages: list[Message], kind: type[Message]) -> list[Message]:
    return [message for message in messages if isinstance(message, kind)]


def code(messages: list[Message]) -> str:
    (error,) = said(messages, b.ErrorResponse)
    assert isinstance(error, b.ErrorResponse)
    return dict(error.parts)["C"]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("SELECT 1", [1]),
        ("SELECT 1; SELECT n FROM a; COPY (SELECT 1) TO STDOUT", [3]),
        ("INSERT INTO a VALUES (1); INSERT INTO b VALUES (2), (3); SELECT 1; SELECT 2", [2, 2]),
        ("CREATE TABLE c (n INT); INSERT INTO c VALUES (1); INSERT INTO c VALUES (2)", [1, 2]),
        ("INSERT INTO a VALUES (1); INSERT INTO b SELECT n FROM a", [1, 1]),
        ("INSERT INTO a VALUES (1); INSERT INTO b VALUES ((SELECT 2)); DELETE FROM a", [1, 1, 1]),
        ("SELECT 1; SELECT n FROM a AS OF 5; SELECT n FROM a AS OF 6", [1, 1, 1]),
        ("DECLARE c CURSOR FOR SELECT 1; FETCH c; CLOSE c", [3]),
        ("BEGIN; SELECT 1; SELECT 2; COMMIT", [1, 2, 1]),
        ("SHOW TABLES; SET statement_timeout = 0; UPDATE a SET n = 1; UPDATE a SET n = 2", [1] * 4),
    ],
)
def test_what_is_a_stretch(text: str, sizes: list[int]) -> None:
    found = stretches(parse_statements(text))
    assert [len(stretch) for stretch in found] == sizes
    assert tuple(parsed for stretch in found for parsed in stretch) == parse_statements(text)


def test_reads_are_of_one_time(talk: Talk, made: Database) -> None:
    holders = "SELECT count(*) FROM reclock.holds"
    during = talk(f.Query(f"SELECT n FROM a; {holders}"))
    (counted,) = said(during, b.DataRow)
    assert isinstance(counted, b.DataRow)
    assert counted.values != (b"0",)  # what the first one has read is held for the second
    assert made.execute(holders).rows == [(0,)]
    assert [m.status for m in said(during, b.ReadyForQuery)] == ["I", "I"]


def test_writes_are_together_or_not_at_all(talk: Talk, made: Database) -> None:
    done = talk(f.Query("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)"))
    assert [m.tag for m in said(done, b.CommandComplete)] == ["INSERT 0 1", "INSERT 0 1"]
    failed = talk(f.Query("INSERT INTO b VALUES (2); INSERT INTO a VALUES (1)"))
    assert code(failed) == "23505"
    assert [m.tag for m in said(failed, b.CommandComplete)] == ["INSERT 0 1"]
    wrong = talk(f.Query("INSERT INTO b VALUES (3); INSERT INTO b VALUES (1/0)"))
    assert code(wrong) == "22012"
    assert [m.status for m in said(wrong, b.ReadyForQuery)] == ["I", "I"]
    assert (rows(made, "a"), rows(made, "b")) == ([1], [1])


def test_a_stretch_sees_what_was_before_it(talk: Talk, made: Database) -> None:
    text = (
        "CREATE TABLE c (n INT); INSERT INTO c VALUES (1); INSERT INTO c VALUES (2); "
        "INSERT INTO b SELECT n FROM c; SELECT count(*) FROM b; SELECT count(*) FROM c"
    )
    assert [m.values for m in said(talk(f.Query(text)), b.DataRow)] == [(b"2",), (b"2",)]
    assert rows(made, "c") == [1, 2]


def test_an_error_leaves_the_stretches_before(talk: Talk, made: Database) -> None:
    text = (
        "INSERT INTO a VALUES (7); INSERT INTO b VALUES (7); DELETE FROM b; "
        "INSERT INTO a VALUES (8); INSERT INTO nothing VALUES (1); INSERT INTO a VALUES (9)"
    )
    assert code(talk(f.Query(text))) == "42P01"
    assert (rows(made, "a"), rows(made, "b")) == ([7], [])


def test_who_has_begun_a_transaction_ends_it(talk: Talk, made: Database) -> None:
    done = talk(
        f.Query("BEGIN"), f.Query("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)"),
        f.Query("ROLLBACK; INSERT INTO b VALUES (2); INSERT INTO b VALUES (3)"),
    )  # fmt: skip
    assert "".join(m.status for m in said(done, b.ReadyForQuery)) == "ITTI"
    assert (rows(made, "a"), rows(made, "b")) == ([], [2, 3])
    done = talk(f.Query("BEGIN; INSERT INTO a VALUES (1); INSERT INTO a VALUES (1/0)"))
    assert [m.status for m in said(done, b.ReadyForQuery)] == ["I", "E"]


def test_a_copy_is_part_of_it(talk: Talk, made: Database) -> None:
    text = "INSERT INTO b VALUES (1); COPY b FROM STDIN; INSERT INTO b VALUES (3)"
    done = talk(f.Query(text), f.CopyData(b"2\n"), f.CopyDone())
    assert [m.tag for m in said(done, b.CommandComplete)] == ["INSERT 0 1", "COPY 1", "INSERT 0 1"]
    failed = talk(f.Query(text), f.CopyData(b"2\n"), f.CopyFail("no"))
    assert code(failed) == "57014"
    assert rows(made, "b") == [1, 2, 3]

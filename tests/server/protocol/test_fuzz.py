"""Whatever a client says: no crash, no hang, and answers that the protocol allows."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.errors import ProtocolViolation
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.frames import Frames
from reclock.server.codec.frontend import read_frontend
from reclock.server.protocol.conversation import Conversation
from reclock.server.protocol.wire import Disconnected

from ..conftest import Script, finish  # noqa: TID252 - the fixture's own class

if TYPE_CHECKING:
    from reclock.server.codec.message import Message
    from reclock.session.database import Database

NAMES = st.sampled_from(["", "a", "b"])
SQL = st.sampled_from(
    [
        "", "SELECT 1", "SELECT $1::int", "SELECT id FROM t ORDER BY id", "BEGIN", "COMMIT",
        "ROLLBACK", "SELEKT", "SELECT 1/0", "SHOW TABLES", "COPY (SELECT id FROM t) TO STDOUT",
        "SELECT 1; SELECT 2", "SET application_name = 'x'",
        "SELECT * FROM t WHERE id = $1 AND name = $2", "SELECT id, name FROM t",
        "SELECT id FROM t; SELECT name FROM t; SELECT 1/0", "FETCH 1 c", "FETCH ALL h", "CLOSE ALL",
        "BEGIN; DECLARE c CURSOR FOR SELECT id FROM t; FETCH 2 c",
        "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t", "SUBSCRIBE (SELECT id FROM t) UP TO 2",
    ]
)  # fmt: skip
FORMATS = st.lists(st.sampled_from([0, 1]), max_size=2).map(tuple)
VALUES = st.lists(st.none() | st.sampled_from([b"1", b"x", b"", b"\0\0\0\7"]), max_size=2).map(
    tuple
)
TYPES = st.lists(st.sampled_from([0, 20, 23, 25, 9]), max_size=2).map(tuple)
MESSAGES = st.one_of(
    st.builds(f.Query, SQL),
    st.builds(f.Parse, NAMES, SQL, TYPES),
    st.builds(f.Bind, NAMES, NAMES, FORMATS, VALUES, FORMATS),
    st.builds(f.Describe, st.sampled_from("SP"), NAMES),
    st.builds(f.Execute, NAMES, st.integers(-1, 2)),
    st.builds(f.Close, st.sampled_from("SP"), NAMES),
    st.just(f.Sync()), st.just(f.Sync()), st.just(f.Flush()),
    st.builds(f.CopyData, st.binary(max_size=3)), st.just(f.CopyDone()),
)  # fmt: skip


def converse(db: Database, messages: list[Message]) -> list[Message]:
    script = Script(*messages)
    with db.session() as session, suppress(Disconnected):
        finish(Conversation(script, session, script.bugs.append).run())
    assert script.bugs == []
    assert db.execute("SELECT * FROM reclock.holds").rows == []
    return script.said


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(messages=st.lists(MESSAGES, max_size=12))
def test_any_messages(db: Database, messages: list[Message]) -> None:
    said = converse(db, [*messages, f.Sync(), f.Query("SELECT 42")])
    if dict(getattr(said[-1], "parts", ())).get("S") == "FATAL":
        return  # a message that no client may send ends the conversation
    assert isinstance(said[-1], b.ReadyForQuery)
    syncs = sum(isinstance(m, f.Sync) for m in messages) + 1
    ready = sum(isinstance(m, b.ReadyForQuery) for m in said)
    assert syncs + 2 <= ready <= syncs + 2 + sum(isinstance(m, f.Query) for m in messages)
    for message, after in pairwise(said):
        if isinstance(message, b.DataRow | b.CopyOutData):
            assert not isinstance(after, b.ReadyForQuery)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.binary(max_size=60))
def test_any_bytes(db: Database, data: bytes) -> None:
    frames = Frames()
    frames.feed(data)
    messages: list[Message] = []
    with suppress(ProtocolViolation):
        while (message := frames.next(read_frontend)) is not None:
            messages.append(message)
    converse(db, messages)

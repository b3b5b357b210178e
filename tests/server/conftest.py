"""A conversation without sockets: messages in, messages out."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.server.codec.backend import read_backend
from reclock.server.codec.frames import LIMIT, Frames
from reclock.server.protocol.conversation import Conversation
from reclock.server.protocol.wire import Disconnected
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.server.codec.message import Message


class Script:
    """A client that has said everything it will say; ``said`` is what it heard."""

    def __init__(self, *messages: Message | Callable[[Script], Message]) -> None:
        self._messages = list(messages)
        self._heard = Frames()
        self._heard.limit = LIMIT
        self.raw = b""
        self.address = "10.0.0.1"
        self.is_local = False
        self.is_encrypted = False
        self.can_encrypt = False
        self.timeouts: list[float | None] = []
        self.bugs: list[BaseException] = []

    async def encrypt(self) -> None:
        self.is_encrypted = True

    async def first(self) -> Message:
        return self._next()

    async def receive(self, timeout: float | None = None, *, within: bool = False) -> Message:
        self.timeouts.append(timeout)
        return self._next()

    def _next(self) -> Message:
        if not self._messages:
            raise Disconnected
        message = self._messages.pop(0)
        return message(self) if callable(message) else message

    def admitted(self) -> None:
        pass

    async def send(self, data: bytes, alarm: object = None) -> None:
        self.raw += data

    async def work(self, job: Callable[[], Any], alarm: object = None) -> Any:
        return job()

    @property
    def said(self) -> list[Message]:
        frames = Frames()
        frames.limit = LIMIT
        frames.feed(self.raw)
        found = []
        while (message := frames.next(read_backend)) is not None:
            found.append(message)
        assert frames.waiting == 0
        return found


def finish(coroutine: Any) -> Any:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(
        tmp_path_factory.mktemp("served") / "state",
        ModelEngine(whole_rows=1),  # nearly every answer is read while it is taken
        clock=ManualClock(1_000),
        background=False,
    )
    made.execute(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(12,2));"
        "INSERT INTO t VALUES (1, 'one', 1.5), (2, NULL, 0), (3, 'drei', 3)"
    )
    with made:
        yield made


@pytest.fixture
def talk(db: Database) -> Callable[..., list[Message]]:
    """Say something in a new session; return what is answered."""

    def talk(*messages: Message, role: str | None = None) -> list[Message]:
        script = Script(*messages)
        with db.session(role) as session, suppress(Disconnected):
            finish(Conversation(script, session, script.bugs.append).run())
        if script.bugs:
            raise script.bugs[0]
        return script.said

    return talk

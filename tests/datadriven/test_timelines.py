"""Which timelines may meet: the whole matrix as text, statement by statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.errors import Error
from reclock.session.database import Database
from reclock.testing.kafka_log import MemoryKafka

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from datadriven import Case

TOPICS = ("plain", "cdc", "changes", "one", "two")
KAFKA = "FROM KAFKA BROKER 'b:1' TOPIC '{}' FORMAT JSON"
KINDS = {
    "topic": KAFKA.format("@plain"),
    "file": "FROM FILE '{path}' FORMAT JSON",
    "cdc": KAFKA.format("@cdc") + " ENVELOPE MATERIALIZE",
    "bound": KAFKA.format("@plain") + " RECLOCK USING marks",
    "debezium": KAFKA.format("@changes") + " ENVELOPE DEBEZIUM",
}


class Script:
    """One database for the file; ``$`` and ``@`` are what a source reads, and topics."""

    def __init__(self, path: Path) -> None:
        kafka = MemoryKafka()
        self._topics = {f"@{name}": kafka.create_topic(1) for name in TOPICS}
        lines = path / "lines.json"
        lines.touch()
        self._words = {f"${k}": text.format(path=lines) for k, text in KINDS.items()}
        self.db = Database(
            path / "state", ModelEngine(), clock=ManualClock(1_000), background=False,
            clusters=lambda connection: kafka.cluster(connection.isolation),
        )  # fmt: skip

    def dispatch(self, case: Case) -> str:
        """Say of every statement whether it is taken, and what is left of those that are not."""
        before = self._objects()
        said = [self._run(line) for line in case.input]
        if case.directive == "reject":
            assert self._objects() == before, "a statement that failed has left something"
        else:
            assert {*said} == {"ok"}
        return "\n".join(said)

    def _run(self, line: str) -> str:
        text = line
        for name, there in (*self._words.items(), *self._topics.items()):
            text = text.replace(name, there)
        try:
            self._execute(text)
        except Error as error:
            said = f"{error.code}: {error.message}{f' ({error.detail})' if error.detail else ''}"
            for name, topic in self._topics.items():
                said = said.replace(topic, name)
            return said
        return "ok"

    def _execute(self, text: str) -> None:
        if text.startswith("SUBSCRIBE"):
            self.db.subscribe(text).close()
        elif text.startswith("SELECT"):
            self.db.execute(f"EXPLAIN {text}")  # may it meet; not: is it complete
        else:
            self.db.execute(text)

    def _objects(self) -> tuple[object, int]:
        rows = self.db.execute("SELECT name, kind, timeline FROM reclock.objects").rows
        return sorted(rows), len(self.db._core.world.stored.items())


@pytest.fixture
def script(tmp_path: Path):
    script = Script(tmp_path)
    yield script
    script.db.close()


def test_timelines(datadriven: Callable[..., None], script: Script) -> None:
    datadriven("timelines.txt", script.dispatch)

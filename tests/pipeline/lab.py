"""One state directory, opened as often as a history likes: real operators, a broker in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.session.database import Database
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.outlets import MemoryOutlets

if TYPE_CHECKING:
    from pathlib import Path


class Lab:
    """A database that can be closed, crashed and opened again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = ManualClock(10_000)
        self.kafka = MemoryKafka()
        self.outlets = MemoryOutlets(self.kafka)
        self.db = self._open()

    def _open(self) -> Database:
        return Database(
            self.home / "state", LocalEngine(), clock=self.clock, background=False,
            clusters=lambda connection: self.kafka.cluster(connection.isolation),
            outlets=self.outlets,
        )  # fmt: skip

    def restart(self) -> None:
        """End in good order, and begin again."""
        self.db.close()
        self.db = self._open()

    def crash(self) -> None:
        """Give up the lock, as the operating system does for a dead process; nothing else."""
        core = self.db._core
        core.intakes.close()
        core.exporters.close()
        self.db._store.close()
        core.merger.close()
        self.db = self._open()

    def close(self) -> None:
        self.db.close()

"""Databases over the model engine, in directories that outlive them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.durable import sqlite
from reclock.session.database import Database
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.outlets import MemoryOutlets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reclock.ingest.connect import Clusters


class Opener:
    """Opens and reopens one state directory; a crash is to forget the database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock(1_000)
        self.engine: type[ModelEngine] = ModelEngine
        self.kafka = MemoryKafka()
        self.outlets = MemoryOutlets(self.kafka)
        self.clusters: Clusters | None = None
        """How topics are reached; None is as they are in memory."""
        self._opened: list[Database] = []

    def __call__(self, *, background: bool = False) -> Database:
        db = Database(
            self.path, self.engine(), clock=self.clock, background=background,
            clusters=self.clusters or (lambda c: self.kafka.cluster(c.isolation)),
            outlets=self.outlets,
        )  # fmt: skip
        self._opened.append(db)
        return db

    def crash(self, db: Database) -> None:
        """Give up the lock, as the operating system does for a dead process; nothing else."""
        db._core.intakes.close()
        db._core.exporters.close()
        db._store.close()
        db._core.merger.close()
        self._opened.remove(db)

    def reopened(self, db: Database) -> Database:
        self.crash(db)
        return self()

    def close(self) -> None:
        for db in self._opened:
            db.close()


@pytest.fixture(scope="module", autouse=True)
def _no_power_is_lost() -> Iterator[None]:
    """Processes die here, not machines: SQLite need not wait for the disk."""
    settings = [setting.replace("FULL", "OFF") for setting in sqlite._SETTINGS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "_SETTINGS", settings)
        yield


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(tmp_path / "state")
    yield opener
    opener.close()


@pytest.fixture(scope="module")
def make_opener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Opener]]:
    """For hypothesis: a fresh directory per example."""
    made: list[Opener] = []

    def make() -> Opener:
        made.append(Opener(tmp_path_factory.mktemp("state")))
        return made[-1]

    yield make
    for opener in made:
        opener.close()


@pytest.fixture
def db(opener: Opener) -> Database:
    return opener()

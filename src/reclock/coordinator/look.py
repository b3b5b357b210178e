"""A database that is only looked at: a copy of its state, in which nothing moves.

No source is read, no sink is written, nothing ticks: what is shown is what was durable when the
copy was made. Tests: tests/coordinator/test_look.py.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reclock.coordinator.database import Database
from reclock.coordinator.place import segments_of
from reclock.coordinator.spark_engine import SparkEngine
from reclock.durable.look import copy_state
from reclock.errors import SourceUnavailable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from reclock.connectors.kafka.cluster import Cluster
    from reclock.connectors.kafka.options import Connection
    from reclock.coordinator.source.connect import Clusters


@contextmanager
def look(path: str | os.PathLike[str], clusters: Clusters | None = None) -> Iterator[Database]:
    """Return a copy of the database in ``path``, whoever is using it, for as long as needed.

    A path where nothing is yet is an empty database, if ``clusters`` says whom one may ask.
    """
    with tempfile.TemporaryDirectory(prefix="reclock-look-") as scratch:
        if clusters is None or Path(path).exists():
            copy_state(Path(path), Path(scratch))
        engine = SparkEngine(segments_of(scratch), None)
        with Database(scratch, engine, background=False, clusters=clusters or _nobody) as db:
            db.execute("SET transaction_isolation = 'serializable'")
            yield db


def _nobody(connection: Connection) -> Cluster:
    message = "a copy of a state reads no sources"
    raise SourceUnavailable(message)

"""The value that a tick takes from a source and publishes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.change.update import Update
    from reclock.dataflow.changes import Stamped
    from reclock.dataflow.piece import Covered
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Effort
    from reclock.durable.keyed import Json
    from reclock.engine.arrangements import Traces
    from reclock.engine.shape import Shape
    from reclock.ids import ObjectId
    from reclock.remap.trace import Remap
    from reclock.time.timestamp import Timestamp

    Look = Callable[[Effort, Stop], "Taken"]


class StateBefore(Protocol):
    """The state of a timeline before a tick."""

    @property
    def shape(self) -> Shape:
        """What there is to compute."""
        ...

    @property
    def traces(self) -> Traces:
        """What is kept."""
        ...

    @property
    def upper(self) -> Timestamp:
        """It is complete before this."""
        ...


class TakenTable(Protocol):
    """What a tick takes for a relation that is read through the source's remap."""

    @property
    def runs(self) -> tuple[Stamped, ...]:
        """Changes that tasks have staged, with the times that they are bound to."""
        ...

    def changes(self, state: StateBefore) -> tuple[pa.RecordBatch, ...]:
        """Return the input of the relation, from the state before the tick."""
        ...


class Taken(NamedTuple):
    """What a tick binds: the remap after it, what that appends, and the changes it brings.

    ``waiting`` is how what is read and not published changes, of a source that has such.
    ``runs`` are changes that tasks have staged, with the times that they are bound to.
    ``dead_letters`` are the records that were skipped, as a delta (``connectors.letters``);
    ``skipped`` are those that tasks have written. ``tables`` is what the source brings to relations
    that are read through its remap. ``held`` is what waits in files then, of a source of which
    something may. ``look`` is what is to be done without the lock: it returns what is to be
    published, whose records have their times, or raises ``TakeAgain`` if a look at them, in tasks,
    says that they cannot be published.
    """

    remap: Remap[Any]
    updates: list[Update[Any, Timestamp]]
    changes: pa.RecordBatch | None
    waiting: pa.RecordBatch | None = None
    runs: tuple[Stamped, ...] = ()
    letters: pa.RecordBatch | None = None
    skipped: tuple[Skipped, ...] = ()
    tables: Mapping[ObjectId, TakenTable] = MappingProxyType({})
    held: Mapping[int, Json] | None = None
    look: Look | None = None


class TakeAgain(Exception):
    """What a tick has taken cannot be published; its source knows why, and offers other things."""


class Skipped(NamedTuple):
    """Records of a range that were skipped, at a time; ``ref`` is the run that has the last."""

    time: Timestamp
    covered: Covered
    ref: RunRef

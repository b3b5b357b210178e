"""Errands: the references, times and names of one execution of a plan; never rows.

A chain has an ``Errand``; the read of a source has its ranges (``spark.staging``). An errand
travels to the tasks as a property of the Spark job, so that the plan itself, which costs Spark more
to build than to run on little, stays as it is from tick to tick. It is small: runs that lie in the
store are references. Runs that travel inside of their references (a few kilobytes each) may add up:
an errand of more than ``INLINE_BYTES`` goes through the store, and the property has its name.
"""

from __future__ import annotations

import pickle
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.changes import Stamped
    from reclock.dataflow.graph import ArrangementId
    from reclock.time.antichain import Antichain
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

INLINE_BYTES: Final = 128 << 10


@dataclass(frozen=True)
class Kept:
    """An arrangement that the graph keeps: its runs, complete before ``upper``."""

    refs: tuple[RunRef, ...]
    upper: Antichain[Timestamp] | None

    @classmethod
    def of(cls, shard: Shard) -> Kept:
        """Return the references of an open shard."""
        return cls(tuple(run.ref for run in shard.runs), shard.upper)


@dataclass(frozen=True)
class Errand:
    """One tick, first load or catch-up, from ``first`` to ``last``, both included.

    ``inputs`` are changes from outside, by the arrangement that divides them among parts.
    ``read`` are kept collections that are read: all rows as of ``last`` if ``hydrating``, else
    what changed in the interval. ``state`` is what operators look up: everything before
    ``first``; nothing if ``hydrating``.
    """

    store: Store
    first: Timestamp
    last: Timestamp
    hydrating: bool
    descriptions: Mapping[ArrangementId, Description[Timestamp]]
    """Of the runs that are written."""
    stem: str
    """Begins the names of all files."""
    inputs: Mapping[ArrangementId, tuple[Stamped, ...]] = field(default_factory=dict)
    read: Mapping[ArrangementId, Kept] = field(default_factory=dict)
    state: Mapping[ArrangementId, Kept] = field(default_factory=dict)
    untils: Mapping[ArrangementId, int] = field(default_factory=dict)
    adopted: frozenset[ArrangementId] = frozenset()
    """Those of ``inputs`` whose runs become runs of the arrangement: they are not written again."""

    def sent(self) -> tuple[str, str | None]:
        """Return the text that tasks read it from, and the file that was written for it."""
        return sent(pickle.dumps(self), self.store, f"errand-{uuid4().hex}")


def received(text: str) -> Errand:
    """Return the errand that was sent."""
    errand = pickle.loads(data_of(text))
    assert isinstance(errand, Errand)
    return errand


def sent(what: bytes, store: Store, name: str) -> tuple[str, str | None]:
    """Return the text that tasks read some bytes from, and the file if they are many: ``name``."""
    data = b64encode(zlib.compress(what, zlib.Z_BEST_SPEED)).decode()
    if len(data) <= INLINE_BYTES:
        return f"={data}", None
    path = store.scratch(name)
    path.write_text(data)
    store.publish(path, name, durable=False)
    where = b64encode(pickle.dumps((store, name))).decode()
    return f"@{where}", name


def data_of(text: str) -> bytes:
    """Return the bytes that were sent."""
    data = text[1:]
    if text[0] == "@":
        store, name = pickle.loads(b64decode(data))
        data = store.file(name).whole().to_pybytes().decode()
    return zlib.decompress(b64decode(data))

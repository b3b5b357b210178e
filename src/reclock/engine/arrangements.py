"""The arrangements of a timeline: which runs each is made of, from one manifest.

``Arrangements`` is a frozen value: the manifest's records, by arrangement. Changes (the runs of a
tick, a new object, a merge) give an append and the value after it; who holds the old one reads on
from the old runs, which stay until nothing names them.

Invariants. Every arrangement has at least one run, made when it was made; its runs meet,
oldest first. An arrangement in which nothing happens gets no run: its last run may end
before the timeline's upper, and ``Traces`` opens it with that upper. All runs of one
tick that are not small enough to travel in the manifest share one segment file; those of
arrangements that get the very same updates, such as a table and a view that shows all of it,
are the same bytes of it.

Tests: tests/engine/test_arrangements.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.cache import process_cache
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.arrangement.shard import Shard, describe
from reclock.dataflow.graph import ArrangementId
from reclock.dataflow.work import Stream
from reclock.durable.manifest_store import Manifest
from reclock.errors import Corrupt
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.arrangement.layout import Layout
    from reclock.arrangement.store import Store as Segments
    from reclock.dataflow.graph import Graph
    from reclock.durable.keyed import Json
    from reclock.durable.store import Append
    from reclock.engine.engine import Updates
    from reclock.time.frontier import Frontier

FIRST: Final = Timestamp(0)
"""The upper of a pace with times of its own that has no complete time yet."""

_OWN: Final = "upper"
"""The key of the record with the upper, where it is not that of the manifest."""

STEADY_ROWS: Final = 1 << 15
"""How many rows a batch has that is written in the background."""

INLINE_BYTES: Final = 4_096
"""Runs up to this size travel in the publishing transaction: no file, no fsync of one."""

Runs = Mapping[ArrangementId, tuple[RunRef, ...]]


@dataclass(frozen=True)
class Swap:
    """Runs of an arrangement, and those that stand for them from now on."""

    arrangement: ArrangementId
    merged: tuple[RunRef, ...]
    runs: tuple[RunRef, ...]


@dataclass(frozen=True)
class Arrangements:
    """The runs of every arrangement, oldest first, and the manifest that says so.

    ``untils`` has the pending arrangements that hold no update due at or after some time.
    """

    manifest: Manifest
    runs: Runs
    own: Timestamp | None = None
    """The upper, if it is not that of the manifest, which then only counts versions."""
    untils: Mapping[ArrangementId, int] = field(default_factory=dict)
    behind: Timestamp | None = None
    """The upper of a timeline whose manifest is ahead of it: objects came or went at no time."""

    @classmethod
    def read(cls, manifest: Manifest, *, own: bool = False) -> Arrangements:
        """Return what the records of a manifest describe."""
        found: dict[ArrangementId, list[RunRef]] = {}
        untils: dict[ArrangementId, int] = {}
        records = manifest.runs()
        stated = records.pop(_OWN, None)
        upper = None if stated is None else Timestamp(stated["upper"])
        for record in records.values():
            try:
                arrangement = ArrangementId(record["arrangement"])
                if "until" in record:
                    untils[arrangement] = int(record["until"])
                    continue
                run = record["run"]
            except KeyError as error:
                message = "a record of a manifest does not decode"
                raise Corrupt(message, detail=f"{record!r:.200}") from error
            found.setdefault(arrangement, []).append(RunRef.from_json(run))
        made = {a: _ordered(runs) for a, runs in found.items()}
        if own:
            return cls(manifest, made, FIRST if upper is None else upper, untils)
        return cls(manifest, made, None, untils, upper)

    @property
    def upper(self) -> Frontier:
        """The upper of every object of the pace."""
        stated = self.behind if self.own is None else self.own
        return self.manifest.upper if stated is None else at(stated)

    def since(self, arrangement: ArrangementId) -> Frontier:
        """Return the earliest time at which an arrangement can be read."""
        return describe(self.runs[arrangement]).since

    def segments(self) -> Iterator[str]:
        """Yield the name of every segment with a run in it, some more than once."""
        for runs in self.runs.values():
            for run in runs:
                if run.segment is not None:
                    yield run.segment

    def changed(
        self,
        new_upper: Frontier,
        added: Runs,
        removed: frozenset[ArrangementId] = frozenset(),
        swaps: tuple[Swap, ...] = (),
        untils: Mapping[ArrangementId, int | None] | None = None,
    ) -> tuple[Append, Arrangements]:
        """Return the append that publishes a step, and the arrangements after it.

        A swap whose runs are not all there any more is left out. ``untils`` are those that
        change; None is none any more.
        """
        runs = {a: refs for a, refs in self.runs.items() if a not in removed}
        changes: dict[str, Json | None] = {
            _name(a, ref): None for a in removed for ref in self.runs[a]
        }
        for swap in swaps:
            refs = runs.get(swap.arrangement, ())
            if set(swap.merged) <= set(refs):
                changes.update({_name(swap.arrangement, ref): None for ref in swap.merged})
                changes.update({_name(swap.arrangement, r): _record(swap.arrangement, r)
                                for r in swap.runs})  # fmt: skip
                kept = [ref for ref in refs if ref not in swap.merged]
                runs[swap.arrangement] = _ordered([*kept, *swap.runs])
        for arrangement, refs in added.items():
            changes.update({_name(arrangement, r): _record(arrangement, r) for r in refs})
            runs[arrangement] = appended(runs.get(arrangement, ()), refs)
        limits = dict.fromkeys(removed & self.untils.keys()) | dict(untils or {})
        for arrangement, until in limits.items():
            if until is not None or arrangement in self.untils:
                changes[f"{arrangement}!until"] = _limit(arrangement, until)
        known = {**self.untils, **limits}
        after = {a: until for a, until in known.items() if until is not None}
        if self.own is None and new_upper.element() > self.manifest.upper.element():
            if self.behind is not None:
                changes[_OWN] = None
            append, contents = self.manifest.contents.change(changes, new_upper)
            return append, Arrangements(Manifest(contents), runs, untils=after)
        changes[_OWN] = {"v": 1, "upper": int(new_upper.element())}
        version = at(self.manifest.upper.element().step())
        append, contents = self.manifest.contents.change(changes, version)
        upper = new_upper.element()
        if self.own is None:
            return append, Arrangements(Manifest(contents), runs, untils=after, behind=upper)
        return append, Arrangements(Manifest(contents), runs, upper, after)


@dataclass(frozen=True, eq=False)
class Traces(Mapping[ArrangementId, Shard]):
    """The arrangements of a graph as shards that are readable up to the timeline's upper.

    A shard is opened when it is first asked for.
    """

    arrangements: Arrangements
    layouts: Mapping[ArrangementId, Layout]
    segments: Segments
    upper: Frontier | None = None
    """Up to where they are complete, if that is further than the arrangements say."""
    _open: dict[ArrangementId, Shard] = field(default_factory=dict, compare=False)

    def __getitem__(self, arrangement: ArrangementId) -> Shard:
        shard = self._open.get(arrangement)
        if shard is None:
            refs = self.arrangements.runs[arrangement]
            shard = Shard.open(
                self.layouts[arrangement], refs, self.segments, process_cache(),
                self.arrangements.upper if self.upper is None else self.upper,
            )  # fmt: skip
            self._open[arrangement] = shard
        return shard

    def is_open(self, arrangement: ArrangementId) -> bool:
        """Return whether a shard has been asked for before."""
        return arrangement in self._open

    def __iter__(self) -> Iterator[ArrangementId]:
        return (a for a in self.arrangements.runs if a in self.layouts)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def layouts_of(graph: Graph) -> Mapping[ArrangementId, Layout]:
    """Return the layout of every arrangement of a graph."""
    return {a: arranged.keying.layout for a, arranged in graph.arrangements.items()}


def write_runs(
    segments: Segments,
    stem: str,
    updates: Mapping[ArrangementId, Updates],
    layouts: Mapping[ArrangementId, Layout],
    descriptions: Mapping[ArrangementId, Description[Timestamp]],
) -> dict[ArrangementId, tuple[RunRef, ...]]:
    """Write the runs of a step, all in one file; runs that are already written stay.

    They describe what the others do: a job that fills a view before there is a complete time does
    not know that there is none (``beginning``).

    An arrangement that has a description and no updates gets a run without rows. A stream is
    made while it is written, and written steadily.
    """
    made: dict[ArrangementId, tuple[RunRef, ...]] = {}
    names: list[ArrangementId] = []
    same: dict[ArrangementId, ArrangementId] = {}
    """Arrangements with the updates of another one, which are written once."""
    first: dict[tuple[int, Layout], ArrangementId] = {}
    steadily = any(isinstance(given, Stream) for given in updates.values())
    with SegmentWriter(segments, stem, inline_limit=INLINE_BYTES, steadily=steadily) as writer:
        for arrangement, description in descriptions.items():
            given = updates.get(arrangement, ())
            if given and isinstance(given, tuple):
                segments.require({ref.segment for ref in given if ref.segment is not None})
                made[arrangement] = tuple(replace(r, description=description) for r in given)
                continue
            layout = layouts[arrangement]
            other = first.setdefault((id(given), layout), arrangement) if given else arrangement
            if other != arrangement:
                same[arrangement] = other
                continue
            batches, per_batch = _batches(given)
            writer.add(str(arrangement), layout, batches, description, batch_rows=per_batch)
            names.append(arrangement)
        for arrangement, ref in zip(names, writer.finish(), strict=True):
            made[arrangement] = (ref,)
    for arrangement, other in same.items():
        (ref,) = made[other]
        described = descriptions[arrangement]
        made[arrangement] = (replace(ref, name=str(arrangement), description=described),)
    return made


def _batches(given: Updates) -> tuple[Iterable[pa.RecordBatch], int]:
    """Return updates in pieces, and how many rows to put into a batch."""
    if isinstance(given, Stream):
        return given.batches, STEADY_ROWS
    if not isinstance(given, pa.RecordBatch) or not given.num_rows:
        return (), 1
    return (given,), rows_per_batch(given.num_rows, given.nbytes)


def beginning(upper: Timestamp) -> Description[Timestamp]:
    """Return what the first run of an arrangement describes, in a pace that has this upper.

    Before there is a complete time it describes none: what it has (a count of no rows) is of time
    0, and so is what the first tick adds.
    """
    return Description(at(0), at(upper), at(upper.back()))


def following(
    refs: tuple[RunRef, ...], upper: Timestamp, since: Timestamp | None = None
) -> Description[Timestamp]:
    """Return what the next run of an arrangement describes: from where the last one ends."""
    return Description(refs[-1].description.upper, at(upper), at(since or 0))


def appended(known: tuple[RunRef, ...], added: tuple[RunRef, ...]) -> tuple[RunRef, ...]:
    """Return known runs and new ones in order; the next run of a tick just comes last."""
    if known and len(added) == 1 and added[0].description.lower == known[-1].description.upper:
        return known + added
    return _ordered([*known, *added])


def _ordered(runs: list[RunRef]) -> tuple[RunRef, ...]:
    """Return runs oldest first, siblings in the order of their places."""
    return tuple(
        sorted(
            runs,
            key=lambda r: (
                r.description.lower.element(),
                r.description.upper.element(),
                r.segment or "",
                r.offset,
            ),
        )
    )


def _name(arrangement: ArrangementId, ref: RunRef) -> str:
    """Return the key of a run in the manifest; no two runs ever have the same."""
    d = ref.description
    interval = f"{d.lower.element()}-{d.upper.element()}~{d.since.element()}"
    part = "" if ref.name == arrangement else f".{ref.name}"  # siblings differ in it
    return f"{arrangement}@{interval}#{ref.checksum:08x}.{ref.offset}{part}"


def _limit(arrangement: ArrangementId, until: int | None) -> Json | None:
    return None if until is None else {"v": 1, "arrangement": arrangement, "until": int(until)}


def _record(arrangement: ArrangementId, ref: RunRef) -> Json:
    return {"v": 1, "arrangement": arrangement, "run": ref.to_json()}

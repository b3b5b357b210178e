"""The graph of steps that keeps all views of a timeline, and the state it arranges.

Definition. A step turns the deltas of its inputs into a delta (and error rows), from one tick to
the next; steps are numbered so that inputs come first. Steps and arrangements are shared: what two
views compute alike (by the plan's fingerprint) is one step, and a collection that two steps look up
by the same columns is arranged once.

An arrangement is the delta of its ``source`` step, added up: ``keying`` says by which
columns. The collection of an object (table, view) is an arrangement like any other, by
its key if it has one, else by its whole row, so operators probe it directly. Those with
``history`` are read as of past times; the state of operators needs only the latest.

A source is a view whose steps begin with an input of records. Records are not kept: how they
are divided among workers is said by arrangements that are only ``passing``.

Built once per change of the catalog (``render``), used by every tick (``maintain``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NewType, Protocol, TypeAlias

from reclock.ids import ObjectId

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.dataflow.delta import Types
    from reclock.dataflow.evaluate import Answer, Request
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.trace import Trace

ArrangementId = NewType("ArrangementId", str)
"""``u7`` is the collection of object u7, ``u7!errors`` its errors; others are shared state,
or, with another word after the ``!``, that of the envelope of a source."""


_DELAYED: Final = "!delayed"


def collection_of(item: ObjectId) -> ArrangementId:
    """Return the arrangement that is the collection of ``item``."""
    return ArrangementId(str(item))


def errors_of(item: ObjectId) -> ArrangementId:
    """Return the arrangement of the error rows of ``item``."""
    return ArrangementId(f"{item}!errors")


def input_of(item: ObjectId) -> ArrangementId:
    """Return how the records of a source are arranged to be passed to workers."""
    return ArrangementId(f"{item}!input")


def images_of(item: ObjectId) -> ArrangementId:
    """Return how the changes that a source captures are passed to workers by their key."""
    return ArrangementId(f"{item}!images")


def positions_of(item: ObjectId) -> ArrangementId:
    """Return the arrangement of the greatest positions in the log that a source captures."""
    return ArrangementId(f"{item}!positions")


def faults_of(item: ObjectId) -> ArrangementId:
    """Return the arrangement of the keys of a source whose last record is a fault."""
    return ArrangementId(f"{item}!faults")


def delayed_of(pending: ArrangementId) -> ArrangementId:
    """Return how error rows that are to wait in ``pending`` are passed to workers."""
    return ArrangementId(f"{pending}{_DELAYED}")


def is_delayed(name: ArrangementId) -> bool:
    """Return whether error rows of that name wait, and are not those of a view."""
    return name.endswith(_DELAYED)


def temp_of(item: ObjectId) -> ObjectId:
    """Return the collection of what a source has read and may not publish yet."""
    return ObjectId(f"{item}!temp")


def letters_of(item: ObjectId) -> ObjectId:
    """Return the collection of the records that a source has skipped."""
    return ObjectId(f"{item}!letters")


@dataclass(frozen=True, slots=True)
class Output:
    """What a step emits: a delta, and error rows ``(code, message)`` as a delta, if any."""

    oks: pa.RecordBatch
    errs: pa.RecordBatch | None = None
    appended: Mapping[ArrangementId, pa.RecordBatch] = field(default_factory=dict)
    """Updates of state that is not the sum of any step's delta, such as accumulators."""


Running: TypeAlias = Generator["Request", "Answer", Output]
"""A step at work: it yields what Spark must evaluate for it, and returns its output."""


class Tick(Protocol):
    """What a step may see of the tick it runs in."""

    @property
    def last(self) -> int:
        """The last time of the tick, ``upper − 1``."""
        ...

    @property
    def first(self) -> int:
        """The first time of the tick, ``lower``."""
        ...

    @property
    def hydrating(self) -> bool:
        """Whether this is the first tick of the steps: from nothing to all rows there are."""
        ...

    def written(self, item: ObjectId) -> pa.RecordBatch | None:
        """Return what was written to ``item`` from outside, or None if nothing was."""
        ...

    def delta(self, step: int) -> pa.RecordBatch:
        """Return the delta of an earlier step."""
        ...

    def trace(self, arrangement: ArrangementId) -> Trace:
        """Return the state of an arrangement before this tick."""
        ...

    def due(self, pending: ArrangementId) -> list[pa.RecordBatch]:
        """Return the updates that waited for a time of this tick; none while hydrating."""
        ...

    def errors(self, pending: ArrangementId) -> list[pa.RecordBatch]:
        """Return the error rows that a step with this state delays, as deltas."""
        ...

    @property
    def leads(self) -> bool:
        """Whether what is said once, and of no row, is to be said here: by one worker."""
        ...

    @property
    def limits(self) -> Limits:
        """From when on nothing is kept pending."""
        ...


class Step(Protocol):
    """One operator of the graph; see the modules of ``steps``."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """The steps whose deltas are read."""
        ...

    @property
    def types(self) -> Types:
        """The Arrow types of the columns that come out."""
        ...

    def run(self, tick: Tick) -> Output | Running:
        """Compute the output of one tick, or begin to, if Spark must help."""
        ...


@dataclass(frozen=True)
class Limits:
    """From when on pending arrangements keep nothing, and how many updates that has left out."""

    untils: Mapping[ArrangementId, int] = field(default_factory=dict)
    dropped: Counter[ArrangementId] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """State kept between ticks; ``source`` is None for state that a step appends itself.

    In one that is ``pending``, ``kh`` is the time at which an update is due: it is kept as long
    as that is not complete (``operators.temporal``).
    """

    id: ArrangementId
    keying: Keying
    source: int | None
    history: bool = False
    pending: bool = False


@dataclass(frozen=True)
class Graph:
    """All steps and arrangements of a timeline.

    ``tables`` maps an object that is written from outside to its input step; ``views`` an
    object that is computed to the step that gives its rows; ``sources`` those of the views
    whose records come from outside to their input step.
    """

    steps: tuple[Step, ...]
    arrangements: Mapping[ArrangementId, Arrangement]
    tables: Mapping[ObjectId, int]
    views: Mapping[ObjectId, int]
    reads: Mapping[int, frozenset[ArrangementId]]
    """The arrangements that each step looks up or appends to."""
    sources: Mapping[ObjectId, int] = field(default_factory=dict)
    references: frozenset[int] = frozenset()
    """The steps that stand for the collections of views."""
    passing: Mapping[ArrangementId, Arrangement] = field(default_factory=dict)
    """How the input of a step lies between workers, where it is no state: never kept."""
    delayed: Mapping[int, ArrangementId] = field(default_factory=dict)
    """The steps that delay rows and errors (``operators.refresh``), and where these wait."""

    def keying(self, name: ArrangementId) -> Keying:
        """Return how an arrangement lies, one that is kept or one that is passing."""
        return (self.passing.get(name) or self.arrangements[name]).keying

    def entry(self, item: ObjectId) -> tuple[int, ArrangementId]:
        """Return where changes of a table or source come in, and how workers divide them."""
        if item in self.sources:
            return self.sources[item], input_of(item)
        return self.tables[item], collection_of(item)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The steps that read each step."""
        found: list[list[int]] = [[] for _ in self.steps]
        for at, step in enumerate(self.steps):
            for source in set(step.inputs):
                found[source].append(at)
        return tuple(tuple(readers) for readers in found)

    @cached_property
    def writers(self) -> Mapping[ArrangementId, tuple[int, ...]]:
        """The steps that append to state which has no source, and to errors of views."""
        found: dict[ArrangementId, list[int]] = {}
        for at, state in self.reads.items():
            for name in state:
                if self.arrangements[name].source is None:
                    found.setdefault(name, []).append(at)
        for item, at in self.views.items():
            found.setdefault(errors_of(item), []).append(at)
        return {name: tuple(steps) for name, steps in found.items()}

    def own(self, item: ObjectId) -> frozenset[int]:
        """Return the steps of a view's own plan: down to the objects that it refers to."""
        seen: set[int] = set()
        waiting = [self.views[item]]
        while waiting:
            at = waiting.pop()
            if at not in seen and at not in self.references:
                seen.add(at)
                waiting += self.steps[at].inputs
        return frozenset(seen)

    def cone(self, step: int) -> frozenset[int]:
        """Return ``step`` and everything it depends on."""
        seen: set[int] = set()
        waiting = [step]
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                waiting += self.steps[at].inputs
        return frozenset(seen)

    def needed(self, wanted: Collection[ArrangementId], given: Collection[int]) -> frozenset[int]:
        """Return the steps that the wanted arrangements come from, down to what is given."""
        if wanted == self.arrangements.keys():
            return frozenset(range(len(self.steps)))
        waiting = [
            at
            for name in wanted
            for at in (self.arrangements[name].source, *self.writers.get(name, ()))
            if at is not None
        ]
        seen: set[int] = set()
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                if at not in given:
                    waiting += self.steps[at].inputs
        return frozenset(seen)

    @cached_property
    def waiting(self) -> Mapping[int, ArrangementId]:
        """The steps with updates that wait for their time, and where those are."""
        return {
            at: name
            for at, state in self.reads.items()
            for name in state
            if self.arrangements[name].pending
        }

    @cached_property
    def cones(self) -> Mapping[ObjectId, frozenset[int]]:
        """The steps that each view depends on."""
        return {item: self.cone(step) for item, step in self.views.items()}

    @cached_property
    def faulty(self) -> Mapping[ArrangementId, frozenset[int]]:
        """The steps whose errors are those of a view, or are delayed for one.

        Errors that are delayed are those of the step that does: they come when it says.
        """
        found = {errors_of(item): self.fault_cone(step) for item, step in self.views.items()}
        for at, pending in self.delayed.items():
            (source,) = self.steps[at].inputs
            found[pending] = self.fault_cone(source)
        return found

    def fault_cone(self, step: int) -> frozenset[int]:
        """Return ``step`` and what it depends on, down to steps that delay errors."""
        seen: set[int] = set()
        waiting = [step]
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                if at not in self.delayed:
                    waiting += self.steps[at].inputs
        return frozenset(seen)

    def state_of(self, item: ObjectId) -> frozenset[ArrangementId]:
        """Return the arrangements that keeping ``item`` needs."""
        found = {collection_of(item)}
        if item in self.views:
            found.add(errors_of(item))
            for step in self.cones[item]:
                found |= self.reads.get(step, frozenset())
        return frozenset(found & self.arrangements.keys())

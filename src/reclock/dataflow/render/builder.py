"""The making of a graph: every step and arrangement once.

Steps are the same when they compute the same from the same inputs (by fingerprint), so
what two views have in common is computed once. An arrangement is named by what it holds:
the fingerprint of the plan node whose rows it arranges, and the key; the same name means
the same contents in every version of the catalog, so state is kept when views come and go.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.dataflow.error_rows import ERROR_TYPES
from reclock.dataflow.graph import (
    Arrangement,
    ArrangementId,
    Graph,
    collection_of,
    delayed_of,
    errors_of,
    input_of,
)
from reclock.dataflow.keying import Keying
from reclock.dataflow.steps.linear import Linear
from reclock.dataflow.steps.multiset import Union
from reclock.dataflow.steps.stateful import Join
from reclock.sql.plan.scalar import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import Step
    from reclock.ids import ObjectId


class Builder:
    """Steps and arrangements so far."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._known: dict[Hashable, int] = {}
        self._prints: list[str] = []
        self._rendered: dict[str, int] = {}
        self._arranged: dict[tuple[int, tuple[int, ...]], ArrangementId] = {}
        self._arrangements: dict[ArrangementId, Arrangement] = {}
        self._reads: dict[int, set[ArrangementId]] = {}
        self._tables: dict[ObjectId, int] = {}
        self._views: dict[ObjectId, int] = {}
        self._sources: dict[ObjectId, int] = {}
        self._passing: dict[ArrangementId, Arrangement] = {}
        self._references: set[int] = set()
        self._delayed: dict[int, ArrangementId] = {}

    def step(self, step: Step, fingerprint: str, *state: ArrangementId) -> int:
        """Add ``step`` unless it is there; ``fingerprint`` names what it computes."""
        known = (type(step).__name__, fingerprint, step.inputs)
        at = self._known.get(known)
        if at is None:
            at = self._known[known] = len(self._steps)
            self._steps.append(step)
            self._prints.append(fingerprint)
        self._reads.setdefault(at, set()).update(state)
        return at

    def once(self, fingerprint: str, make: Callable[[], int]) -> int:
        """Return the step that computes ``fingerprint``, made if there is none yet."""
        if fingerprint not in self._rendered:
            self._rendered[fingerprint] = make()
        return self._rendered[fingerprint]

    def types(self, step: int) -> Types:
        """Return the types of a step's columns."""
        return self._steps[step].types

    def arrange(self, step: int, key: tuple[int, ...]) -> tuple[ArrangementId, Keying]:
        """Arrange the rows of ``step`` by ``key``, unless something already does."""
        found = self._arranged.get((step, key))
        keying = Keying(self.types(step), key)
        if found is None:
            found = self._named(self._prints[step], key)
            self._arranged[step, key] = found
            self._arrangements[found] = Arrangement(found, keying, step)
        return found, keying

    def index(self, step: int, key: tuple[int, ...]) -> ArrangementId:
        """Arrange the rows of ``step`` by ``key`` for readers too, who may ask for the past."""
        name, _ = self.arrange(step, key)
        self._arrangements[name] = replace(self._arrangements[name], history=True)
        return name

    def state(self, fingerprint: str, keying: Keying) -> ArrangementId:
        """Make state that its step appends to itself."""
        return self.named_state(self._named(fingerprint, keying.key), keying)

    def named_state(self, name: ArrangementId, keying: Keying) -> ArrangementId:
        """Make state that its step appends to itself, and that belongs to one object."""
        self._arrangements[name] = Arrangement(name, keying, None)
        return name

    def pending(self, fingerprint: str, types: Types) -> tuple[ArrangementId, Keying]:
        """Make state of updates that wait for their time; ``kh`` is that, so there is no key."""
        keying = Keying(types, ())
        name = self._named(f"{fingerprint} pending", ())
        self._arrangements[name] = Arrangement(name, keying, None, pending=True)
        return name, keying

    def delayed(self, step: Step, fingerprint: str, pending: ArrangementId) -> int:
        """Add a step that delays rows and errors, which wait in ``pending``."""
        at = self.step(step, fingerprint, pending)
        self._delayed[at] = pending
        errors = delayed_of(pending)
        self._passing[errors] = Arrangement(errors, Keying.whole_row(ERROR_TYPES), None)
        return at

    def table(self, item: ObjectId, step: int, key: tuple[int, ...]) -> None:
        """Keep what is written to ``item`` as a collection."""
        self._tables[item] = step
        self._collect(item, step, key)
        self._arranged[step, key] = collection_of(item)

    def source(self, item: ObjectId, step: int, key: tuple[int, ...]) -> ArrangementId:
        """Take the records of ``item`` in at ``step``, divided among workers by ``key``."""
        self._sources[item] = step
        return self.passing(input_of(item), step, key)

    def passing(self, name: ArrangementId, step: int, key: tuple[int, ...]) -> ArrangementId:
        """Divide the rows of ``step`` among workers by ``key``, and keep nothing."""
        self._passing[name] = Arrangement(name, Keying(self.types(step), key), step)
        return name

    def view(self, item: ObjectId, step: int, key: tuple[int, ...]) -> None:
        """Keep the rows of ``step`` as the collection of ``item``, and its errors."""
        self._views[item] = step
        self._collect(item, step, key)
        errors = errors_of(item)
        keying = Keying.whole_row(ERROR_TYPES)
        self._arrangements[errors] = Arrangement(errors, keying, None, history=True)

    def reference(self, item: ObjectId) -> int:
        """Return the step that stands for the collection of ``item``.

        For a view it is a step of its own: who refers to a view uses its collection as
        state (and the view cannot be dropped before), who merely computes the same does not.
        """
        if item in self._tables:
            return self._tables[item]
        rows = self._views[item]
        at = self.step(Union((rows,), self.types(rows)), f"get {item}")
        self._references.add(at)
        collection = self._arrangements[collection_of(item)]
        self._arranged[at, collection.keying.key] = collection.id
        return at

    def graph(self) -> Graph:
        """Return what was built."""
        reads = {at: frozenset(state) for at, state in self._reads.items()}
        return Graph(
            self._narrowed(),
            dict(self._arrangements),
            self._tables,
            self._views,
            reads,
            self._sources,
            frozenset(self._references),
            self._passing,
            self._delayed,
        )

    def _narrowed(self) -> tuple[Step, ...]:
        """Return the steps; a join gives only what is read of it, if all who read it say what."""
        held = {kept.source for kept in (*self._arrangements.values(), *self._passing.values())}
        held |= set(self._views.values())
        read: dict[int, set[int]] = {}
        for step in self._steps:
            if isinstance(step, Linear):
                read.setdefault(step.source, set()).update(*map(columns_of, step.scalars))
            else:
                held |= set(step.inputs)
        return tuple(
            replace(step, operator=replace(step.operator, needed=frozenset(read.get(at, ()))))
            if isinstance(step, Join) and at not in held
            else step
            for at, step in enumerate(self._steps)
        )

    def _collect(self, item: ObjectId, step: int, key: tuple[int, ...]) -> None:
        name = collection_of(item)
        keying = Keying(self.types(step), key)
        self._arrangements[name] = Arrangement(name, keying, step, history=True)

    def _named(self, fingerprint: str, key: tuple[int, ...]) -> ArrangementId:
        text = f"{fingerprint} by {','.join(map(str, key))}"
        return ArrangementId(f"a{hashlib.sha256(text.encode()).hexdigest()[:20]}")

"""Plan nodes: frozen, checked when made, and named by their structure.

Invariants. A node computes its ``schema``, its ``timeline`` (by ``combine_all`` over its
inputs, so a plan that mixes timelines cannot be constructed, P6) and its ``unique_keys``
when it is made, and refuses to be made wrong. ``fingerprint`` is a stable hash of the
structure that ignores column names: equal fingerprints compute equal rows, so sub-plans
and arrangements are shared by it. Nodes are equal when fingerprint and schema are.

Only Project, Filter, FlatMap and a join's residual hold scalar expressions; every other
node refers to the columns of its input by position.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reclock.errors import Error
from reclock.sql.plan.scalar import ColumnRef, walk
from reclock.time.timeline import CONSTANT, TimelineContext, combine_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.schema import Schema

Keys = frozenset[frozenset[int]]
NO_KEYS: Keys = frozenset()
ONE_ROW: Keys = frozenset({frozenset()})
_MAX_KEYS = 8


class PlanError(Error):
    """A plan node that would be ill-formed: a bug of the rewrite that made it."""


@dataclass(frozen=True, eq=False)
class Node:
    """The base of all plan nodes."""

    schema: Schema = field(init=False, repr=False)
    timeline: TimelineContext = field(init=False, repr=False)
    unique_keys: Keys = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes this one reads."""
        return ()

    @property
    def width(self) -> int:
        """How many columns come out."""
        return len(self.schema)

    def _finish(self, schema: Schema, keys: Iterable[frozenset[int]], *structure: object) -> None:
        """Set what every node has; ``structure`` is what tells it from its kind."""
        contexts = [i.timeline for i in self.inputs]
        prints = [i.fingerprint for i in self.inputs]
        own = "|".join([type(self).__name__, *prints, *(repr(part) for part in structure)])
        set_ = object.__setattr__
        set_(self, "schema", schema)
        set_(self, "timeline", combine_all(contexts) if contexts else CONSTANT)
        set_(self, "unique_keys", _minimal(keys))
        set_(self, "fingerprint", hashlib.sha256(own.encode()).hexdigest()[:20])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Node)
            and self.fingerprint == other.fingerprint
            and self.schema == other.schema
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def _check_columns(self, what: str, columns: Iterable[int], width: int) -> None:
        for column in columns:
            if not 0 <= column < width:
                message = f"{type(self).__name__}: {what} refers to column {column} of {width}"
                raise PlanError(message)

    def _check_scalar(self, what: str, scalar: Scalar, schema: Schema) -> None:
        from_schema = list(schema)
        for part in walk(scalar):
            if not isinstance(part, ColumnRef):
                continue
            if not 0 <= part.index < len(from_schema):
                message = (
                    f"{type(self).__name__}: {what} {scalar} refers to column {part.index} "
                    f"of {schema}"
                )
                raise PlanError(message)
            if from_schema[part.index].nullable and not part.nullable:
                message = f"{type(self).__name__}: {what} {scalar} takes a nullable column as not"
                raise PlanError(message)
            if from_schema[part.index].type != part.type:
                message = (
                    f"{type(self).__name__}: {what} {scalar} takes column {part.index} "
                    f"as {part.type}, but it is {schema}"
                )
                raise PlanError(message)


def _minimal(keys: Iterable[frozenset[int]]) -> Keys:
    """Keep the smallest keys, a bounded number of them, in a stable choice."""
    ordered = sorted(set(keys), key=lambda k: (len(k), sorted(k)))
    kept: list[frozenset[int]] = []
    for key in ordered:
        if len(kept) < _MAX_KEYS and not any(k <= key for k in kept):
            kept.append(key)
    return frozenset(kept)


@dataclass(frozen=True, slots=True)
class SortKey:
    """Order by a column."""

    column: int
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        text = f"#{self.column}" + (" desc" if self.descending else "")
        if self.nulls_first != self.descending:
            text += " nulls first" if self.nulls_first else " nulls last"
        return text

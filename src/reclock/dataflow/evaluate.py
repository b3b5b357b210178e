"""Expressions that steps ask Spark for, and their evaluation for small changes.

Two kinds of request. ``RowRequest``: the values of scalar expressions over the columns of
a delta. ``GroupRequest``: an aggregate or window query over tagged snapshots of groups.
Requests of many steps are answered together: one Spark job for all of a wave, however
many views there are, because a job's fixed cost is far above that of a small change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from reclock.sql.plan.scalar import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from reclock.sql.plan.relation import Reduce, Window
    from reclock.sql.plan.scalar import Scalar


@dataclass(frozen=True, eq=False)
class RowRequest:
    """The values of ``scalars`` for each row of ``rows`` (a delta; ``c0, …`` are its columns).

    ``source`` is the step whose delta it is: requests with one source share their input.
    """

    source: int
    rows: pa.RecordBatch
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False)
class GroupRequest:
    """The rows that ``node`` gives for the rows of each version, by itself.

    ``rows`` are ``version, c0, …, count`` with count 1, the columns those of the node's input;
    the answer is ``version``, the node's columns, and ``bad``: the error of a row that has no
    value (``SQLSTATE|message``), else NULL. A version without rows gives none.
    """

    rows: pa.RecordBatch
    node: Reduce | Window


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Per scalar, its values, and its errors (``SQLSTATE|message``), None if it cannot fail."""

    values: tuple[pa.Array, ...]
    errors: tuple[pa.Array | None, ...]


def computed(scalars: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Return what has to be evaluated, each once: a column is there already."""
    return tuple(dict.fromkeys(s for s in scalars if not isinstance(s, ColumnRef)))


def answered(request: RowRequest, scalars: Sequence[Scalar], found: Evaluated) -> Evaluated:
    """Return the answer to a request, from its rows and what was ``found`` for ``scalars``."""
    place = {scalar: at for at, scalar in enumerate(scalars)}
    values: list[pa.Array] = []
    errors: list[pa.Array | None] = []
    for scalar in request.scalars:
        if isinstance(scalar, ColumnRef):
            values.append(request.rows.column(scalar.index))
            errors.append(None)
        else:
            values.append(found.values[place[scalar]])
            errors.append(found.errors[place[scalar]])
    return Evaluated(tuple(values), tuple(errors))


Request: TypeAlias = RowRequest | GroupRequest
Answer: TypeAlias = "Evaluated | pa.RecordBatch"


class Evaluator(Protocol):
    """Answers the requests of a wave, in their order."""

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Return one answer per request."""
        ...


class Evaluators:
    """An evaluator that many threads may ask at once: one for each, made when it is needed."""

    def __init__(self, make: Callable[[], Evaluator]) -> None:
        self._make = make
        self._idle: list[Evaluator] = []

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Return one answer per request."""
        try:
            one = self._idle.pop()
        except IndexError:
            one = self._make()
        try:
            return one.evaluate(requests)
        finally:
            self._idle.append(one)

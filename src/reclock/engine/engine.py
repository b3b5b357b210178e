"""The seam between the engine and what computes: Spark, or a model in tests.

An engine has no state of its own that matters: everything it needs comes with the call, everything
it makes is in the answer, and a failed call is simply repeated. Calls come from any thread, several
at once.

``updates`` of an arrangement are one batch, conformed and consolidated for its layout, or, when
there are many, runs already written to the segment store, with disjoint ranges of ``kh`` and the
tick's interval as description; or, from background work, a ``Stream`` of pieces that are made while
they are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.changes import Changes
    from reclock.dataflow.evaluate import Answer, Request
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.job.load import Load
    from reclock.dataflow.job.tasks import Tasks
    from reclock.dataflow.merge import Merge
    from reclock.dataflow.piece import Piece
    from reclock.dataflow.pieces import Pieces
    from reclock.dataflow.placement import Execution, Outlook
    from reclock.dataflow.stage import Stager, Together
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Effort, Stream
    from reclock.engine.shape import Shape
    from reclock.ids import ObjectId
    from reclock.remap.batch import Range
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp

Updates: TypeAlias = "pa.RecordBatch | tuple[RunRef, ...] | Stream"


class Engine(Protocol):
    """Computes ticks and answers; see the head of this module."""

    @property
    def load(self) -> Load | None:
        """How far a large first load is that ``hydrate`` is doing, if it is."""
        ...

    def configure(self, execution: Execution) -> None:
        """Have all that follows run in the driver, in Spark tasks, or where it belongs."""
        ...

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the values of expressions over rows that are not stored: of a CHECK, a default."""
        ...

    def outlook(self, shape: Shape, changed: Collection[ObjectId]) -> Outlook | None:
        """Return where ticks would run in which these tables and sources change."""
        ...

    def step(
        self,
        shape: Shape,
        changes: Mapping[ObjectId, Changes],
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
        *,
        effort: Effort | None = None,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Return what the changes of tables in ``[lower, upper)`` append to arrangements.

        ``traces`` hold the times before ``lower``. Arrangements that do not change are left
        out. ``effort`` gets what tasks did, if the updates are theirs. Raises what ``stop``
        does, if that asks for an end of what takes long.
        """
        ...

    def is_due(
        self,
        shape: Shape,
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
    ) -> bool:
        """Return whether something changes in ``[lower, upper)`` because time passes alone."""
        ...

    def hydrate(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        beside: Unhurried | None = None,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Return the contents of ``new`` arrangements as of ``as_of``, all at that time.

        With ``beside`` it is called from a thread of its own, and lets ticks pass. It raises what
        ``stop`` does, if that asks for an end of what takes long.

        ``traces`` has those that are not new. Empty ones may be left out.
        """
        ...

    def follow(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        before: Mapping[ArrangementId, Shard],
        after: Mapping[ArrangementId, Shard],
        *,
        lower: Timestamp,
        upper: Timestamp,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Return what ``[lower, upper)`` appends to ``new`` arrangements.

        ``before`` has all, the new ones too, before ``lower``; ``after`` those that are not new,
        before ``upper``.
        """
        ...

    def peek(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        stop: Stop | None = None,
    ) -> pa.Table:
        """Return the rows of a query at ``as_of``: its visible columns, in its order.

        ``shape`` is None for a query that reads nothing. Raises ``ExpressionFailed`` if an
        expression of the query fails on some row, and what ``stop`` raises if it asks for an end.
        """
        ...

    def stream(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        stop: Stop | None = None,
    ) -> Pieces:
        """Return the same in batches of any size, not all of them in memory at once."""
        ...

    def dataframe(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
    ) -> Any:
        """Return the same as a Spark DataFrame, with the query's column names."""
        ...

    def reading_tasks(self, records: int, size: int = 0) -> int:
        """Return how many tasks should read so many records; 0: the driver reads.

        They have ``size`` bytes, as far as that is known.
        """
        ...

    def note_read(self, records: int, size: int, seconds: float) -> None:
        """Note what it took the driver to read so many records and bytes."""
        ...

    def stage(
        self,
        stager: Stager | Together,
        shares: Sequence[Sequence[Range]],
        title: str,
        *,
        stop: Stop | None = None,
    ) -> Sequence[Piece]:
        """Read ranges of a source in tasks, a share each, into runs; in the order of the shares.

        It raises what ``stop`` does, if that asks for an end.
        """
        ...

    def merge(
        self,
        merges: Sequence[Merge],
        store: Store,
        stem: str,
        *,
        title: str,
        stop: Stop | None = None,
    ) -> Sequence[tuple[RunRef, ...]]:
        """Return the runs that stand for those of each merge: one, or siblings.

        They are in segments of ``store`` whose names begin with ``stem``. It raises what ``stop``
        does, if that asks for an end.
        """
        ...

    def tasks(
        self,
        rows: int,
        title: str,
        *,
        effort: Effort | None = None,
        stop: Stop | None = None,
    ) -> Tasks:
        """Return what looks at so many updates of a source before a tick publishes them."""
        ...

    def close(self) -> None:
        """Give back what was taken."""
        ...

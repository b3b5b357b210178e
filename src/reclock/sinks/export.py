"""From closed timestamps to committed ones: the sink as a state machine.

::

    Exporter.resume(unfenced, …) ──▶ ready, at the last committed frontier
        advance(upper)  committed         ready, at a later frontier
                        Retry, Stop       ready, where it was
                        anything else     lost: the outcome of a transaction is unknown
    lost ── renew(unfenced) ──▶ ready, at the frontier that turns out to be committed

``advance`` commits at most one transaction: a group of whole closed timestamps (``gather``), and
with it their BEGIN and END and the frontier after them. It has no thread and no loop, reads no
clock, and waits for nothing but the log. The caller repeats it until ``frontier`` is ``upper``,
waits between retries, and makes new producers, as owner of the sink's state.

Invariants. The frontier is what a reader of the consistency topic finds, always: it moves when a
transaction is known to be committed, by at most one transaction. Output is committed once: updates
before the frontier are dropped, and after an unknown outcome progress is read, with all older
producers barred. Progress that is neither the frontier nor what was attempted was written by
another program, and is an error; so is that of another ``writer``, a database that took the sink
over, unless it is what this one was told to take over itself (``heir_of``). Until that one has
written, it ``is_heir``.

Lost progress. If the consistency topic has less than the sink's state knows (``known``) that is
an error, but for one case: its beginning was deleted, and the frontier with it. Then the sink
goes on at what it knows, or after the last time in the data, if that is later. That is exact: a
time without a message in the data, before the frontier that was lost, had no changes.

Idle time is progress too: without new data the frontier moves on, at most once in ``idle_ms``,
before the first data as well; else the history that the sink needs could never be forgotten. A
group that takes too long for a transaction is tried again at half its size; one timestamp alone
is tried twice, then the sink stops and says what to change. Keeps P4, P5.

Tests: tests/sinks/test_export.py walks at random through all failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from reclock.errors import Fenced as FencedError
from reclock.errors import InvalidValue, SinkRegressed
from reclock.failpoints import hit
from reclock.sinks.consistency import frontier_record, transaction_records
from reclock.sinks.failure import Retry, Stop, TooLong
from reclock.sinks.gather import Gatherer, Limits
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from reclock.sinks.consistency import FrontierRecord, Record
    from reclock.sinks.encode.encoder import Encoder, Fault
    from reclock.sinks.gather import Changes
    from reclock.sinks.log import Fenced, Unfenced
    from reclock.sinks.producer import Target
    from reclock.time.frontier import Frontier

    Positions = Callable[[Frontier], Mapping[str, Any]]
    """Where each source stood at a frontier, as JSON."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sink exports: from which changes, encoded how, in which portions."""

    target: Target
    encoder: Encoder
    changes: Changes
    positions: Positions
    limits: Limits = field(default_factory=Limits)
    idle_ms: int = 1_000
    writer: str = ""
    """Whose work the progress is."""
    sources: Positions | None = None
    """What the sources are."""
    heir_of: Will | None = None


class Will(NamedTuple):
    """What a sink goes on from that another database wrote."""

    writer: str
    frontier: Frontier


class Advanced(NamedTuple):
    """What one call of ``advance`` did; all zero if there was nothing to do yet."""

    frontier: Frontier
    messages: int = 0
    times: int = 0
    faults: Sequence[Fault] = ()


class Exporter:
    """A sink that is ready, or lost."""

    def __init__(self, plan: Plan, fenced: Fenced, frontier: Frontier, *, recorded: bool) -> None:
        self._plan = plan
        self._fenced: Fenced | None = fenced
        self._frontier = frontier
        self._recorded = recorded
        self._attempted = frontier
        self._times = 0
        self._gatherer = Gatherer()
        self._limits = plan.limits
        self._alone_too_long = False
        self._committed_ms: int | None = None

    @classmethod
    def resume(
        cls, plan: Plan, unfenced: Unfenced, start: Frontier, known: Frontier | None = None
    ) -> Self:
        """Fence, and go on where the sink was left; a new one begins at ``start``.

        ``known`` is the frontier that this sink's state has, which may be less than what is
        committed, but not more.
        """
        fenced = unfenced.fence()
        try:
            found = fenced.progress()
            if found is None:
                frontier = _lost(plan, fenced, start, known)
                return cls(plan, fenced, frontier, recorded=False)
            check_writer(plan, found)
            if known is not None and not known.precedes(found.frontier):
                raise Stop(_regressed(plan.target, found, known))
        except BaseException:
            fenced.close()
            raise
        return cls(plan, fenced, found.frontier, recorded=True)

    @property
    def frontier(self) -> Frontier:
        """All times before it are committed."""
        return self._frontier

    @property
    def is_heir(self) -> bool:
        """Whether all that is written is what this sink took over."""
        will = self._plan.heir_of
        return will is not None and self._recorded and self._frontier == will.frontier

    def records(self) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yield the messages of the data topic, each with its time."""
        if self._fenced is None:
            raise _is_lost()
        return self._fenced.records()

    @property
    def is_lost(self) -> bool:
        """Whether it needs a new producer."""
        return self._fenced is None

    def advance(self, upper: Frontier, now_ms: int) -> Advanced:
        """Commit the next group of times before ``upper``, if there is anything to commit."""
        if self._fenced is None:
            raise _is_lost()
        if not self._frontier.strictly_precedes(upper):
            return Advanced(self._frontier)
        try:
            return self._advance(self._fenced, upper, now_ms)
        except TooLong as failed:
            self._gatherer.forget()
            raise self._smaller(failed) from failed
        except (Retry, Stop) as failed:
            self._gatherer.forget()
            if isinstance(failed.error, FencedError):
                self._lose()
            raise
        except BaseException:
            self._lose()
            raise

    def renew(self, unfenced: Unfenced) -> None:
        """Fence again and find out what is committed; the sink's state must be ours."""
        self._lose()
        fenced = unfenced.fence()
        found = fenced.progress()
        if found is not None:
            check_writer(self._plan, found)
        if found is None or found.frontier.strictly_precedes(self._frontier):
            if self._recorded:
                raise Stop(_regressed(self._plan.target, found, self._frontier))
        elif found.frontier in (self._frontier, self._attempted):
            self._moved(found.frontier)
        else:
            message = f'another instance of sink "{found.sink}" wrote meanwhile'
            detail = f"it is at {found.frontier}; we were at {self._frontier}"
            raise Stop(FencedError(message, detail=detail))
        self._fenced = fenced

    def close(self) -> None:
        """Give the producer back."""
        self._lose()

    def _advance(self, fenced: Fenced, upper: Frontier, now_ms: int) -> Advanced:
        plan = self._plan
        lower = self._frontier
        group = self._gatherer.next(lower, upper, plan.changes, self._limits)
        if group.updates is None and self._too_soon(group.end, now_ms):
            return Advanced(lower)
        encoded = plan.encoder.encode(group.updates, Description(lower, group.end, lower))
        records: list[Record] = []
        for time, count in encoded.times:
            records += transaction_records(time, plan.target.topic, count)
        positions = plan.positions(group.end)
        sources = {} if plan.sources is None else plan.sources(group.end)
        records.append(
            frontier_record(plan.target.sink, group.end, positions, plan.writer, sources)
        )
        self._attempted, self._times = group.end, group.times
        fenced.send(encoded.chunks(), records)
        self._moved(group.end)
        self._committed_ms = now_ms
        self._limits = _larger(self._limits, plan.limits)
        self._alone_too_long = False
        hit("sink.report.before")
        messages = sum(count for _, count in encoded.times)
        return Advanced(group.end, messages, group.times, encoded.faults)

    def _moved(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._recorded = True

    def _too_soon(self, end: Frontier, now_ms: int) -> bool:
        """Return whether progress without data need not be written yet."""
        if self._committed_ms is None or end.is_closed:
            return False
        return 0 <= now_ms - self._committed_ms < self._plan.idle_ms

    def _smaller(self, failed: TooLong) -> Retry | Stop:
        """Make the next group smaller, or give up on a timestamp that cannot be."""
        if self._times > 1:
            self._limits = replace(self._limits, rows=max(1, self._limits.rows // 2))
            return Retry(failed.error)
        if self._alone_too_long:
            return Stop(failed.error)
        self._alone_too_long = True
        return Retry(failed.error)

    def _lose(self) -> None:
        self._gatherer.forget()
        if self._fenced is not None:
            self._fenced.close()
            self._fenced = None


def _lost(plan: Plan, fenced: Fenced, start: Frontier, known: Frontier | None) -> Frontier:
    """Return where a sink goes on that has no progress: at its start, if it never wrote."""
    if known is not None and not fenced.is_emptied():
        raise Stop(_regressed(plan.target, None, known))
    last = fenced.last_time()
    if last is None:
        return start if known is None else known
    after = at(last + 1)
    if known is None and not fenced.is_emptied():
        raise Stop(_regressed(plan.target, None, after))
    return after if known is None else after.join(known)


def check_writer(plan: Plan, found: FrontierRecord) -> None:
    """Refuse to go on from what another database wrote, unless told to."""
    if found.writer == plan.writer:
        return
    if plan.heir_of == Will(found.writer, found.frontier):
        return
    message = f'another database writes sink "{found.sink}"'
    detail = (
        f'in topic "{plan.target.consistency}" database {found.writer or "unnamed"} is at '
        f"{found.frontier}; this one is {plan.writer or 'unnamed'}"
    )
    hint = "stop one of the two: drop this sink, or create it again with recover = true"
    raise Stop(FencedError(message, detail=detail, hint=hint))


def _is_lost() -> InvalidValue:
    return InvalidValue("the sink needs a new producer")


def _larger(now: Limits, most: Limits) -> Limits:
    return replace(now, rows=min(now.rows * 2, most.rows))


def _regressed(target: Target, found: FrontierRecord | None, known: Frontier) -> SinkRegressed:
    message = f'the progress of sink "{target.sink}" is less than it wrote'
    there = "nothing" if found is None else str(found.frontier)
    detail = f'it wrote all times before {known}; topic "{target.consistency}" has {there}'
    hint = "the topic was emptied or recreated; drop the sink and create it again"
    return SinkRegressed(message, detail=detail, hint=hint)

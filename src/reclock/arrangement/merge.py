"""Fewer, larger runs: when to merge, and the merge itself, which also compacts.

Policy. Sizes double: in a settled shard every run has at least twice the rows of all newer ones
together, so n rows are in at most log₃ n + 1 runs, and a row is rewritten only when its run grows
by half or more, so O(log n) times in its life. ``plan_merge`` returns the newest runs from the
oldest that breaks the rule; older runs keep it afterwards. Siblings, the runs of one Spark job,
count as one and are merged together or not at all; ``plan_union`` is for those that would be better
off as fewer. ``plan_compaction`` is for runs that are left alone: it asks for a rewrite when half
of the rows are in runs whose times are no longer distinguished, ``plan_removal`` when it is half of
pending updates whose time has come.

Merge. Runs that follow one another become one with description [first lower, last upper)
and a later since: times before it are advanced to it, updates that then cancel disappear
(logical compaction). No reader at or after since can tell: for every t ≥ since the
accumulation at t is unchanged. A merge may be done in parts, each a range of ``kh``: equal rows
have equal hashes, so the parts together are the merge, as siblings.

Merges run concurrently with ticks, never in them, and let them pass (``precedence``). Their output
is published by the manifest like any run; the runs merged stay readable until no manifest and no
reader names them.

Cost: linear in the rows, a bounded number of blocks in memory (``stream``).

Tests: tests/arrangement/test_merge.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from reclock.arrangement.family import by_range, families, is_sibling, joined
from reclock.arrangement.precedence import PRECEDENCE
from reclock.arrangement.segment import rows_per_batch
from reclock.arrangement.shard import count_from, describe, within
from reclock.arrangement.stream import advance_to, merged
from reclock.errors import InvalidCompaction
from reclock.time.description import Description
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import Run, RunRef
    from reclock.arrangement.segment import SegmentWriter
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

    class Stop(Protocol):
        """Who may ask for an end, from another thread."""

        def check(self) -> None:
            """Raise the reason, if an end was asked for."""
            ...


UNITED_ROWS: Final = 16_000_000
"""Siblings that overlap stay as they are from so many rows on."""

PART_ROWS: Final = 1_000_000
"""A merge in parts has at most one part for so many rows."""

INT64_MIN: Final = -INT64_MAX - 1

_SMALL: Final = 16
"""Siblings of less than this share of a part, on average, are united."""


def plan_merge(refs: Sequence[RunRef]) -> slice | None:
    """Return which runs of a shard, oldest first, to merge into one; ``None`` for none.

    The run without rows that an arrangement may begin with asks for no merge: all that came
    after it would be rewritten. It goes with the first merge that begins right after it.
    """
    start = None
    newer = 0
    families = families_of(refs)
    second = families[1][0] if len(families) > 1 else len(refs)
    first = 0 if any(ref.rows for ref in refs[:second]) else second
    for index, rows in reversed(families):
        if newer and rows < 2 * newer and index >= first:
            start = index
        newer += rows
    if start is None:
        return None
    return slice(0 if start == first else start, len(refs))


def plan_compaction(refs: Sequence[RunRef], since: Antichain[Timestamp]) -> slice | None:
    """Return which runs to rewrite because most of their times need not be told apart.

    A run is *spent* if it tells times apart and ``since`` is beyond all of them. When the
    spent runs hold at least half of all rows, the newest and longest stretch of them is
    rewritten; it tells no times apart then, so no run is rewritten for this twice. Runs that only
    add have nothing that cancels: they wait for a merge because of their sizes.
    """
    if since.is_closed:
        return None
    spent = [_is_spent(ref, since.element()) for ref in refs]
    told_apart = sum(ref.rows for ref, is_spent in zip(refs, spent, strict=True) if is_spent)
    if not told_apart or 2 * told_apart < sum(ref.rows for ref in refs):
        return None
    end = max(index for index, flag in enumerate(spent) if flag) + 1
    start = end
    while start and spent[start - 1]:
        start -= 1
    return None if all(ref.adds for ref in refs[start:end]) else slice(start, end)


def plan_union(runs: Sequence[Run]) -> slice | None:
    """Return siblings to make fewer runs of.

    Those that overlap, so that a probe has one to look into, not many; unless they have very many
    rows: a rewrite would cost more than it saves. Those with ranges of their own are read as one
    (``family``), and stay unless they are small. As a merge has at most one part for
    ``PART_ROWS`` rows, what becomes of small ones is fewer: it comes to an end.
    """
    start = 0
    for family in families(runs):
        stop = start + len(family)
        rows = sum(run.rows for run in family)
        small = _SMALL * rows < len(family) * PART_ROWS
        if len(family) > 1 and (small or (rows <= UNITED_ROWS and by_range(family) is None)):
            return slice(start, stop)
        start = stop
    return None


def plan_removal(runs: Sequence[Run], floor: int) -> slice | None:
    """Return which runs to rewrite because most of what they hold is before ``floor``.

    That is all of them, when at least half of their updates have a ``kh`` before it: each
    rewrite costs no more than what it removes.
    """
    rows = sum(run.ref.rows for run in runs)
    left = sum(count_from(run, floor) for run in runs)
    return slice(0, len(runs)) if rows and 2 * left <= rows else None


def _is_spent(ref: RunRef, since: Timestamp) -> bool:
    upper, told = ref.description.upper.element(), ref.description.since.element()
    return upper <= since.step() and told < upper.back()


def families_of(refs: Sequence[RunRef]) -> list[tuple[int, int]]:
    """Return where each run with its siblings begins, and how many rows they have."""
    found: list[tuple[int, int]] = []
    for index, ref in enumerate(refs):
        rows = max(1, ref.rows)  # an empty run is a run too
        if index and is_sibling(refs[index - 1].description, ref.description):
            first, before = found.pop()
            found.append((first, before + rows))
        else:
            found.append((index, rows))
    return found


def merge(
    writer: SegmentWriter,
    name: str,
    layout: Layout,
    runs: Sequence[Run],
    since: Antichain[Timestamp],
    *,
    floor: int | None = None,
    stop: Stop | None = None,
) -> None:
    """Add the run that stands for ``runs``, compacted to ``since``, to a segment.

    Updates with a ``kh`` before ``floor`` are left out, and not read: those of pending updates
    whose time has come. It raises what ``stop`` does.
    """
    description = compacted([run.ref for run in runs], since)
    first = INT64_MIN if floor is None else floor
    merge_range(writer, name, layout, runs, description, first=first, last=INT64_MAX, stop=stop)


def merge_range(
    writer: SegmentWriter,
    name: str,
    layout: Layout,
    runs: Sequence[Run],
    description: Description[Timestamp],
    *,
    first: int,
    last: int,
    stop: Stop | None = None,
) -> None:
    """Add one part of a merge, which ``compacted`` describes, to a segment.

    It has the updates with a ``kh`` from ``first`` to ``last``, both included; ``runs`` are all
    that have such ones.
    """
    since = description.since.element()
    sources = [within(source, first, last) for source in joined(runs)]
    batches = PRECEDENCE.let_pass(merged(layout, sources, advance_to(layout, since)))
    if stop is not None:
        batches = _checked(batches, stop)
    per_batch = rows_per_batch(sum(run.rows for run in runs), sum(run.ref.length for run in runs))
    writer.add(name, layout, batches, description, batch_rows=per_batch)


def compacted(refs: Sequence[RunRef], since: Antichain[Timestamp]) -> Description[Timestamp]:
    """Return what describes runs that are merged and compacted to ``since``."""
    whole = describe(refs)
    if since.is_closed or not whole.since.precedes(since):
        message = f"cannot compact to since {since}"
        detail = f"the runs are compacted to {whole.since}"
        hint = "drop the collection if it is no longer read" if since.is_closed else None
        raise InvalidCompaction(message, detail=detail, hint=hint)
    return Description(whole.lower, whole.upper, since)


def _checked(batches: Iterator[pa.RecordBatch], stop: Stop) -> Iterator[pa.RecordBatch]:
    """Yield batches until an end is asked for."""
    for batch in batches:
        stop.check()
        yield batch

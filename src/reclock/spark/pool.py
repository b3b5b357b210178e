"""Scheduler pools: how Spark jobs share the cores, and their names on Spark's pages.

Every job has a title, a group of its own and a pool (``titled``): the pages of Spark show what runs
for whom. Spark schedules fairly between pools. That of ticks, with first loads and catching up, has
the next free core if it has none; if all want more, it has twice the share of queries and of
reading sources, and four times that of merges and renewals, which nothing waits for. So a tick
waits for a task of a large read or merge at the most, never for all of them. In each pool every job
has the same share.

A session of the user's may schedule otherwise, or know these pools: its settings stay.

Tests: tests/spark/test_pool.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Final

from reclock.spark.stoppable import is_stopped, new_tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark import SparkContext

TITLE_LENGTH: Final = 120
_POOL: Final = "spark.scheduler.pool"
_DESCRIPTION: Final = "spark.job.description"
_GROUP: Final = "spark.jobGroup.id"
_YEAR_2001, _YEAR_5138 = 10**12, 10**14


class Pool(Enum):
    """What jobs are for, by the name of their pool."""

    TICKS = "ticks"
    INGEST = "ingest"
    MERGES = "merges"
    QUERIES = "queries"


_SHARES: Final = {
    Pool.TICKS: (4, 1), Pool.INGEST: (2, 0), Pool.QUERIES: (2, 0), Pool.MERGES: (1, 0),
}  # fmt: skip
"""Weight and least number of cores."""


def fairly(scratch: Path) -> dict[str, str]:
    """Return the settings of a Spark that schedules this way; ``scratch`` gets a file."""
    pools = "".join(
        f'  <pool name="{pool.value}"><schedulingMode>FAIR</schedulingMode>'
        f"<weight>{weight}</weight><minShare>{least}</minShare></pool>\n"
        for pool, (weight, least) in _SHARES.items()
    )
    file = scratch / "pools.xml"
    file.write_text(f'<?xml version="1.0"?>\n<allocations>\n{pools}</allocations>\n')
    return {"spark.scheduler.mode": "FAIR", "spark.scheduler.allocation.file": file.as_uri()}


@contextmanager
def titled(context: SparkContext, title: str, pool: Pool) -> Iterator[str]:
    """Have Spark call the jobs of the block, which this thread begins, so; give their group."""
    group = new_tag()
    made = {_DESCRIPTION: title, _GROUP: group, _POOL: pool.value}
    before = {name: context.getLocalProperty(name) for name in made}
    for name, value in made.items():
        context.setLocalProperty(name, value)
    try:
        yield group
    finally:
        for name, known in before.items() if not is_stopped(context) else ():
            context.setLocalProperty(name, known)  # type: ignore[arg-type]  # None is none


def title_of(kind: str, ms: int | None, names: Iterable[str]) -> str:
    """Return what a job is called: its kind, its time in UTC, and the names of what it makes.

    Times of a timeline that counts are numbers.

    >>> title_of("tick", 1_700_000_001_000, ["sales", "regions"]), title_of("tick", 7, [])
    ('tick 22:13:21 · sales, regions', 'tick 7')
    >>> title_of("tick", 1_700_000_001_500, [f"view_{n:03}" for n in range(100)])[-31:]
    ' view_008, view_009 and 90 more'
    """
    when = "" if ms is None else f" {ms}"
    if ms is not None and _YEAR_2001 <= ms < _YEAR_5138:
        at = datetime.fromtimestamp(ms // 1000, UTC)
        when = f" {at:%H:%M:%S}" + (f".{ms % 1000:03}" if ms % 1000 else "")
    title, rest = f"{kind}{when}", list(names)
    for number, name in enumerate(rest):
        longer = f"{title} · {name}" if number == 0 else f"{title}, {name}"
        if len(longer) > TITLE_LENGTH:
            return f"{title} and {len(rest) - number} more"
        title = longer
    return title

"""How Spark jobs share the cores: those of reads beside those of ticks, not before them.

Spark schedules fairly between pools. Jobs that answer queries are in a pool of their own
(``reading``); all others, those of ticks and first loads, are in the default one, which has the
next free core if it has none, and twice the share if both want more. So a tick waits for a task of
a large read at the most, never for all of them. Among reads each has the same share.

Tests: tests/dataflow/test_pool.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark import SparkContext

READS: Final = "reads"
_PROPERTY: Final = "spark.scheduler.pool"
_POOLS: Final = """<?xml version="1.0"?>
<allocations>
  <pool name="default">
    <schedulingMode>FAIR</schedulingMode><weight>2</weight><minShare>1</minShare>
  </pool>
  <pool name="reads">
    <schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare>
  </pool>
</allocations>
"""


def fairly(scratch: Path) -> dict[str, str]:
    """Return the settings of a Spark that schedules this way; ``scratch`` gets a file."""
    file = scratch / "pools.xml"
    file.write_text(_POOLS)
    return {"spark.scheduler.mode": "FAIR", "spark.scheduler.allocation.file": file.as_uri()}


@contextmanager
def reading(context: SparkContext) -> Iterator[None]:
    """Have the jobs that this thread begins in the block be those of a read."""
    before = context.getLocalProperty(_PROPERTY)
    context.setLocalProperty(_PROPERTY, READS)
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, before)  # type: ignore[arg-type]  # None is none

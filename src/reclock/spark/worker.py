"""What a Python worker of Spark does about its memory, wherever it runs.

Memory that a task frees is kept for the next one, up to a bound (``KEPT_BYTES``). By default a
large array is a map of its own, whose pages are zeroed each time it is made. Arrow's own allocator
does so too, and asks for huge pages, which a busy machine has to make first. So arrays of Arrow
come from the allocator of C like all others, and all of them from its heap: that saved four tenths
of the processor time of a join of a million rows.

Spark collects garbage after each task, which looks at all that a worker has imported. So that is
exempt, as soon as a task has it, and again when a later task has imported more.

Tests: tests/spark/test_worker.py.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from typing import Final

KEPT_BYTES: Final = 256 << 20
"""How much free memory a worker keeps at the end of its heap."""

_TRIM_THRESHOLD: Final = -1
_MOST_MAPS: Final = -4


class _Settled:
    """How many modules there were when a worker last settled."""

    modules = 0


def keep_memory() -> None:
    """Have the allocator of C keep memory that is freed; where it is not glibc's, do nothing."""
    import pyarrow as pa  # noqa: PLC0415 - it starts threads, unless it is told before (``daemon``)

    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        on_heap = allocator.mallopt(_MOST_MAPS, 0)
        if allocator.mallopt(_TRIM_THRESHOLD, KEPT_BYTES) and on_heap:
            pa.set_memory_pool(pa.system_memory_pool())


def settle() -> None:
    """Exempt what has been imported from garbage collection; the first time, keep memory.

    For the beginning of a task, and for when it has unpickled what it is about.
    """
    there = len(sys.modules)
    if there == _Settled.modules:
        return
    if not _Settled.modules:
        keep_memory()
    _Settled.modules = there
    gc.collect()
    gc.freeze()

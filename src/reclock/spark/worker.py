"""What a Python worker of Spark does about its memory, wherever it runs.

Memory that a task frees is kept for the next one, up to a bound (``KEPT_BYTES``): by default every
array of more than 128 KiB is a map of its own, and its pages are zeroed for each task again, which
took a fifth of a worker's time.

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
_MMAP_THRESHOLD: Final = -3
_MOST_ON_HEAP: Final = 32 << 20
"""The largest threshold that glibc takes: what is larger is a map of its own."""


class _Settled:
    """How many modules there were when a worker last settled."""

    modules = 0


def keep_memory() -> None:
    """Have the allocator of C keep memory that is freed; where it is not glibc's, do nothing."""
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_MMAP_THRESHOLD, _MOST_ON_HEAP)
        allocator.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)


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

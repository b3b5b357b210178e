"""Errors of files: gone, changed, unfit, or out of reach.

``SourceRegressed``: what is bound cannot be read again, for ever. ``SourceStopped``: the file
is not what the source was declared to be, and no waiting helps. ``SourceUnavailable``: the
operating system refuses for now.
"""

from __future__ import annotations

import errno
from typing import Final

from reclock.errors import SourceRegressed, SourceStopped, SourceUnavailable

_ANEW: Final = "what is already bound cannot be read again: drop the source and create it again"
_NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM)


def gone(name: str, bound: int) -> SourceRegressed:
    """Return the error of a bound file that is not there."""
    detail = f"offsets below {bound} of it are bound"
    return SourceRegressed(f'file "{name}" is gone', detail=detail, hint=_ANEW)


def truncated(name: str, bound: int, end: int) -> SourceRegressed:
    """Return the error of a file that ends before what was bound, or was to be read."""
    detail = f"offsets below {bound} were there, but it ends at {end}"
    return SourceRegressed(f'file "{name}" was truncated', detail=detail, hint=_ANEW)


def shortened(name: str, end: int, raw: int, size: int) -> SourceRegressed:
    """Return the error of a file that lost bytes of those that were looked at."""
    detail = f"its records below offset {end} were in its first {raw} bytes, but it has {size}"
    return SourceRegressed(f'file "{name}" was truncated', detail=detail, hint=_ANEW)


def changed(name: str, end: int) -> SourceRegressed:
    """Return the error of a file whose first bytes are not those that were read."""
    detail = f"what it has below offset {end} is not what it had"
    return SourceRegressed(f'file "{name}" was changed', detail=detail, hint=_ANEW)


def unfit(name: str, why: str, detail: str, hint: str | None = None) -> SourceStopped:
    """Return the error of a file that is not what it should be."""
    return SourceStopped(f'file "{name}" {why}', detail=detail, hint=hint)


def unavailable(path: str, error: OSError) -> SourceUnavailable:
    """Return the error of what the operating system refuses."""
    message = f'"{path}" cannot be read: {error.strerror or error}'
    code = "42501" if error.errno in _NOT_ALLOWED else None
    return SourceUnavailable(message, code=code)

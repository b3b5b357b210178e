"""A column of moments as the clocks of a zone show them, with their offsets.

Python's zones are asked once per quarter of an hour that occurs, or once per second where the
offset changes within it.

Tests: tests/server/codec/test_zoned.py.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.sql.zone import offset_text, tzinfo_of

if TYPE_CHECKING:
    from datetime import tzinfo

_QUARTER: Final = 900
_SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800
_LAST: Final = 253_402_300_799
"""Seconds of the years 1 to 9999, which Python has."""


def local_times(moments: pa.Array, name: str) -> tuple[pa.Array, pa.Array]:
    """Return timestamps, in UTC, as local times, and their offsets as bytes.

    >>> times, offsets = local_times(pa.array([0, None], pa.timestamp("us")), "Asia/Kolkata")
    >>> str(times[0]), offsets[0].as_py(), times[1].as_py()
    ('1970-01-01 05:30:00', b'+05:30', None)
    """
    micros = np.asarray(
        pc.fill_null(moments.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64
    )
    offsets = _offsets(micros // _SECOND, tzinfo_of(name))
    valid = moments.is_valid()
    local = pa.array(micros + offsets * _SECOND).cast(pa.timestamp("us"))
    known, places = np.unique(offsets, return_inverse=True)
    texts = [offset_text(timedelta(seconds=int(offset))).encode() for offset in known]
    written = pa.array(texts, pa.large_binary()).take(pa.array(places.reshape(-1)))
    return pc.if_else(valid, local, None), written


def _offsets(seconds: np.ndarray[Any, Any], zone: tzinfo) -> np.ndarray[Any, Any]:
    """Return how many seconds a zone is ahead at each moment."""
    quarters, places = np.unique(seconds // _QUARTER, return_inverse=True)
    begin = np.array([_offset(int(q) * _QUARTER, zone) for q in quarters], np.int64)
    end = np.array([_offset(int(q) * _QUARTER + _QUARTER - 1, zone) for q in quarters], np.int64)
    found: np.ndarray[Any, Any] = begin[places.reshape(-1)] if len(begin) else begin
    for place in np.flatnonzero((begin != end)[places.reshape(-1)] if len(begin) else []):
        found[place] = _offset(int(seconds[place]), zone)
    return found


def _offset(second: int, zone: tzinfo) -> int:
    at = _EPOCH + timedelta(seconds=min(max(second, _FIRST), _LAST))
    try:
        offset = at.astimezone(zone).utcoffset()
    except OverflowError:  # at the ends of the calendar
        return 0
    return 0 if offset is None else round(offset.total_seconds())

"""The skew of times from another system against the clock, and what may explain it.

Definition. The skew of a time t at now is ``t − now`` milliseconds. A sender that means
milliseconds and writes something else is recognised by what its times would be if they were
meant otherwise::

    t × 1000 near now          seconds
    t ÷ 1000 near now          microseconds
    t ÷ 1000000 near now       nanoseconds
    t − now near k × 15 min    another time zone, for an offset that some zone has

Near is within a day for units, within two minutes for zones. It is a suspicion, for a person to
look at: nothing is converted. Tests: tests/time/test_skew.py.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

DAY_MS: Final = 86_400_000
_ZONE_MS: Final = 900_000
_WIDEST_MS: Final = 14 * 3_600_000
_ROUGHLY_MS: Final = 120_000
_UNITS: Final = (("seconds", 1_000, 1), ("microseconds", 1, 1_000), ("nanoseconds", 1, 1_000_000))


def distance(time: int, now_ms: int) -> str:
    """Return how far a time is from now, roughly, for a person.

    >>> distance(1_700_000_000_000, 1_700_011_578_777), distance(1_700_000_000_000, 1_700_000_000)
    ('3.2 hours', '19656 days')
    """
    away = abs(time - now_ms)
    for unit, size in (("days", DAY_MS), ("hours", 3_600_000), ("minutes", 60_000)):
        if away >= 2 * size:
            return (
                f"{away / size:.0f} {unit}" if away >= 100 * size else f"{away / size:.1f} {unit}"
            )
    return f"{away / 1_000:.1f} seconds"


def suspicion(time: int, now_ms: int) -> str | None:
    """Return what the times of a sender look like whose last one is ``time``, if not like now.

    >>> suspicion(1_700_000_000, 1_700_000_000_000)
    'timestamps look like seconds'
    >>> suspicion(1_700_007_200_500, 1_700_000_000_000)
    'timestamps look like those of another time zone: 2:00:00 ahead'
    """
    for unit, times, by in _UNITS:
        if time and abs(time * times // by - now_ms) < DAY_MS:
            return f"timestamps look like {unit}"
    skew = time - now_ms
    zones = round(skew / _ZONE_MS)
    near = abs(skew - zones * _ZONE_MS) <= _ROUGHLY_MS
    if zones and near and abs(skew) <= _WIDEST_MS + _ROUGHLY_MS:
        away = timedelta(milliseconds=abs(zones) * _ZONE_MS)
        where = "ahead" if skew > 0 else "behind"
        return f"timestamps look like those of another time zone: {away} {where}"
    return None

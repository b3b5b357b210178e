"""Paces: the objects of a timeline that become complete in the same steps.

Definition. All times of a timeline have one meaning, but its objects become complete at different
moments. A *pace* is a set of objects with one upper::

    the timeline itself         what the system gives times to: tables, sources that are bound
    Own(timeline, (source,))    a source that brings its times with it, and views over it alone
    Own(timeline, (a, b, …))    views over several of these; "" stands for the timeline itself

The upper of a pace of one source is that source's own progress. Views of several move to where all
that they read are complete: a *joint* pace. So a source that is behind, or far ahead, delays only
its readers (P6), and never moves the oracle.

Law: ``joined`` is the pace of an object that reads objects of those paces; it is associative,
commutative and idempotent. Tests: tests/time/test_pace.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from reclock.time.timeline import Counter, EpochMilliseconds, External, User

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.time.timeline import Timeline

COMMON: Final = ""
"""Stands for what the system gives times to, among the roots of a joint pace."""


@dataclass(frozen=True, slots=True)
class Own:
    """Objects of ``timeline`` that move with these sources, by their ids, sorted."""

    timeline: Timeline
    roots: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.timeline}/{'+'.join(self.roots)}"


Pace: TypeAlias = EpochMilliseconds | Counter | External | User | Own


def timeline_of(pace: Pace) -> Timeline:
    """Return what the times of a pace mean."""
    return pace.timeline if isinstance(pace, Own) else pace


def is_joint(pace: Pace) -> bool:
    """Return whether a pace moves where several others have got to."""
    return isinstance(pace, Own) and len(pace.roots) > 1


def parts_of(pace: Pace) -> tuple[Pace, ...]:
    """Return a pace and, if it is joint, those that it follows.

    >>> from reclock.time.timeline import EPOCH_MS
    >>> [str(part) for part in parts_of(Own(EPOCH_MS, ("", "u7")))]
    ['EpochMilliseconds/+u7', 'EpochMilliseconds', 'EpochMilliseconds/u7']
    """
    if not isinstance(pace, Own) or not is_joint(pace):
        return (pace,)
    roots = (Own(pace.timeline, (r,)) if r else pace.timeline for r in pace.roots)
    return (pace, *roots)


def order(pace: Pace) -> tuple[bool, bool, str]:
    """Return the order in which to move: others follow the sources that bring their times."""
    return is_joint(pace), not isinstance(pace, Own), str(pace)


def joined(timeline: Timeline, paces: Iterable[Pace]) -> Pace:
    """Return the pace of what reads objects of ``paces``, all of one timeline.

    >>> from reclock.time.timeline import EPOCH_MS
    >>> late = Own(EPOCH_MS, ("u7",))
    >>> print(joined(EPOCH_MS, [late]), joined(EPOCH_MS, [EPOCH_MS, late]), joined(EPOCH_MS, []))
    EpochMilliseconds/u7 EpochMilliseconds/+u7 EpochMilliseconds
    """
    roots: set[str] = set()
    for pace in paces:
        roots |= set(pace.roots) if isinstance(pace, Own) else {COMMON}
    return timeline if roots <= {COMMON} else Own(timeline, tuple(sorted(roots)))

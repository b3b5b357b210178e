"""Selects the timestamp of a read: a pure function that explains itself (P6, P7).

Inputs. The ``Bounds`` of every object the read touches; the oracle's read timestamp r
(``None`` for a read of constants, which have no timeline); the isolation; ``AS OF``. ::

    S = join of the sinces             the earliest time all inputs are readable at
    C = largest time complete in all inputs: min(uppers) - 1; none if some upper is {0};
        without bound if every input is closed, or there is none

Rules.

    AS OF t                 t, refused when t < S
    AS OF AT LEAST t        C if C ≥ max(t, S), else max(t, S)
    strict serializable     max(S, r): sees every applied write, never goes back
    serializable            C if C ≥ S, else S: the freshest time that needs no wait

"Freshest" has no meaning where C is without bound, because every later time is complete
too: there the read is at the timeline's own time r, or at the bound, whichever is later. A
finished object is thus read as of now, not at the end of time, where every temporal
filter would have expired.

Properties, for every choice:

- every input's since ≤ timestamp: a read never returns what compaction has blurred;
- the choice is ``ready`` exactly when every upper is beyond the timestamp; else
  ``waiting_for`` names each object that must still advance, and what it must pass;
- under strict serializable, ``linearize`` says when the timestamp is beyond r (an input
  had already forgotten r): the answer may be shown only once the oracle's read timestamp
  has reached it, else a read elsewhere could be seen to go back;
- an input whose since is ``{}`` is dropped: no time is readable.

Waiting is bounded by the caller (``statement_timeout``), which quotes the same
explanation. Cost: O(n) for n objects. Properties: tests/time/test_select.py; cases with
their explanations: tests/datadriven/select.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from reclock.errors import InvalidValue, Unreadable
from reclock.time.frontier import (
    Bounds,
    common_upper,
    describe_sinces,
    last_complete,
    readable_since,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.time.frontier import Frontier
    from reclock.time.timestamp import Timestamp


class Isolation(Enum):
    """What a session asks of its reads."""

    STRICT_SERIALIZABLE = "strict serializable"
    SERIALIZABLE = "serializable"


@dataclass(frozen=True, slots=True)
class AsOf:
    """``AS OF t``: this time and no other."""

    time: Timestamp


@dataclass(frozen=True, slots=True)
class AsOfAtLeast:
    """``AS OF AT LEAST t``: this time, or a fresher one that needs no wait."""

    time: Timestamp


@dataclass(frozen=True, slots=True)
class Lag:
    """An object that is not complete at the wanted time yet."""

    object: str
    upper: Timestamp
    wanted: Timestamp

    @property
    def behind(self) -> int:
        """How far its upper must still move."""
        return self.wanted + 1 - self.upper

    def __str__(self) -> str:
        started = "" if self.upper else ", no complete timestamps yet"
        return f"{self.object} (upper {self.upper}, {self.behind} behind{started})"


@dataclass(frozen=True, slots=True)
class Choice:
    """A timestamp to read at, and everything that led to it."""

    timestamp: Timestamp
    rule: str
    inputs: tuple[Bounds, ...]
    read_ts: Timestamp | None
    waiting_for: tuple[Lag, ...]
    linearize: bool

    @property
    def ready(self) -> bool:
        """Whether every input is complete at the timestamp."""
        return not self.waiting_for

    def explain(self, more: Iterable[tuple[str, str]] = ()) -> str:
        """Return the lines that ``EXPLAIN TIMESTAMP`` prints, and before them ``more``."""
        facts = [
            *more,
            ("timestamp", str(self.timestamp)),
            ("chosen as", self.rule),
            ("oracle read", "none" if self.read_ts is None else str(self.read_ts)),
            ("can answer", self._readiness()),
        ]
        facts += [(f"input {b.object}", f"since {b.since} upper {b.upper}") for b in self.inputs]
        width = max(len(name) for name, _ in facts)
        return "\n".join(f"{name:>{width}}: {value}" for name, value in facts)

    def _readiness(self) -> str:
        conditions = [f"when {lag} advances past {lag.wanted}" for lag in self.waiting_for]
        if self.linearize:
            conditions.append(f"when the oracle's read timestamp reaches {self.timestamp}")
        return " and ".join(conditions) or "now"


def select(
    inputs: Iterable[Bounds],
    *,
    isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
    read_ts: Timestamp | None = None,
    as_of: AsOf | AsOfAtLeast | None = None,
) -> Choice:
    """Choose the timestamp of a read.

    >>> from reclock.time.frontier import at
    >>> from reclock.time.timestamp import Timestamp
    >>> orders = Bounds("orders", since=at(100), upper=at(150))
    >>> print(select([orders], read_ts=Timestamp(160)).explain())
       timestamp: 160
       chosen as: strict serializable: the later of since 100 and the oracle's 160
     oracle read: 160
      can answer: when orders (upper 150, 11 behind) advances past 160
    input orders: since {100} upper {150}
    """
    objects = tuple(inputs)
    since = readable_since(objects)
    upper = common_upper(objects)
    strict = False
    match as_of:
        case AsOf(time):
            _check_kept(time, since, objects)
            chosen, rule = time, f"AS OF {time}"
        case AsOfAtLeast(time):
            chosen, rule = _freshest(upper, read_ts, time.join(since))
            rule = f"AS OF AT LEAST {time}: {rule}"
        case None if isolation is Isolation.SERIALIZABLE:
            chosen, rule = _freshest(upper, read_ts, since)
            rule = f"serializable: {rule}"
        case None:
            strict = True
            chosen, rule = _strict(read_ts, since, constant=upper.is_closed)
    return Choice(
        timestamp=chosen,
        rule=rule,
        inputs=objects,
        read_ts=read_ts,
        waiting_for=tuple(
            Lag(b.object, b.upper.element(), chosen) for b in objects if not b.complete_at(chosen)
        ),
        linearize=strict and read_ts is not None and chosen > read_ts,
    )


def _freshest(
    upper: Frontier, read_ts: Timestamp | None, bound: Timestamp
) -> tuple[Timestamp, str]:
    """Return the freshest complete time at or beyond ``bound``, else ``bound``."""
    if upper.is_closed:
        chosen = bound if read_ts is None else bound.join(read_ts)
        return chosen, "now, as every later time is complete too"
    fresh = last_complete(upper)
    if fresh is not None and fresh >= bound:
        return fresh, "the freshest complete time"
    return bound, "the earliest acceptable time, as none from it on is complete"


def _strict(
    read_ts: Timestamp | None, since: Timestamp, *, constant: bool
) -> tuple[Timestamp, str]:
    """Return the oracle's time, or since where that was forgotten."""
    if read_ts is not None:
        rule = f"the later of since {since} and the oracle's {read_ts}"
        return since.join(read_ts), f"strict serializable: {rule}"
    if not constant:
        message = "a strict serializable read needs its timeline's oracle"
        raise InvalidValue(message)
    return since, "strict serializable: constants have no timeline, any readable time"


def _check_kept(time: Timestamp, since: Timestamp, objects: Sequence[Bounds]) -> None:
    if time < since:
        message = f"timestamp {time} is not readable: it has been compacted away"
        hint = f"the earliest time that can be read is {since}"
        raise Unreadable(message, detail=describe_sinces(objects), hint=hint)

"""Timelines: the meaning of a timestamp, and the rule that unlike meanings never meet (P6).

Definition. A timeline is the meaning of a timestamp number:

    EpochMilliseconds        near wall-clock now: tables, Kafka, files, generators
    Counter(broker, topic)   a Debezium transaction count; one per consistency topic, or
                             "; complete": the count of steps in which they became complete
    External(source)         a CDCv2 source's own times; joinable only with itself
    User(name)               whatever the user says they share: WITH (timeline = 'name')

Rule. The inputs of one dataflow have at most one timeline. ``TimelineContext`` is what a
plan node carries: no timeline yet (constants, which hold at every time), or one timeline
and the object it came from. ``combine`` is the only way to build the context of a node
with several inputs, so a plan that mixes timelines cannot be constructed.

Laws of combine (associative, commutative up to the named origin, constants neutral) and
the stable text form: tests/time/test_timeline.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidValue, TimelineMismatch

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class EpochMilliseconds:
    """Milliseconds since the Unix epoch, near wall-clock now."""

    def __str__(self) -> str:
        return "EpochMilliseconds"


@dataclass(frozen=True, slots=True)
class Counter:
    """Transactions counted by a Debezium consistency topic, or as they become complete."""

    broker: str
    topic: str
    complete: bool = False

    def __post_init__(self) -> None:
        """Refuse a topic that would make the text form ambiguous; Kafka allows none such."""
        if {",", ";"} & {*self.topic}:
            message = f'invalid topic name "{self.topic}"'
            raise InvalidValue(message)

    def __str__(self) -> str:
        return f"Counter({self.broker}, {self.topic}{_COMPLETE if self.complete else ''})"


@dataclass(frozen=True, slots=True)
class External:
    """Times that a CDCv2 source brought with it."""

    source: str

    def __str__(self) -> str:
        return f"External({self.source})"


@dataclass(frozen=True, slots=True)
class User:
    """Times that the user says belong together under a name."""

    name: str

    def __str__(self) -> str:
        return f"User({self.name})"


Timeline = EpochMilliseconds | Counter | External | User

EPOCH_MS: Final = EpochMilliseconds()

_COMPLETE: Final = "; complete"

_TEXT = re.compile(r"(?P<kind>Counter|External|User)\((?P<inside>.*)\)", re.DOTALL)


def parse_timeline(text: str) -> Timeline:
    """Read the stable text form that ``str`` writes.

    >>> parse_timeline("Counter(localhost:9092, tx)")
    Counter(broker='localhost:9092', topic='tx', complete=False)
    >>> parse_timeline(str(User("replay"))) == User("replay")
    True
    """
    if text == str(EPOCH_MS):
        return EPOCH_MS
    match = _TEXT.fullmatch(text)
    if match is not None:
        inside = match["inside"]
        if match["kind"] == "External":
            return External(inside)
        if match["kind"] == "User":
            return User(inside)
        broker, comma, topic = inside.rpartition(", ")  # a topic name has no comma
        if comma:
            return Counter(broker, topic.removesuffix(_COMPLETE), topic.endswith(_COMPLETE))
    message = f'invalid timeline "{text}"'
    raise InvalidValue(message)


def user_timeline(name: str) -> User:
    """Return the timeline of ``WITH (timeline = 'name')``; system names are refused."""
    if not name or name.startswith(("mz_", "reclock_")):
        message = f'unacceptable timeline name "{name}"'
        hint = 'choose a name that is not empty and does not begin with "mz_" or "reclock_"'
        raise InvalidValue(message, code="42602", hint=hint)
    return User(name)


@dataclass(frozen=True, slots=True)
class TimelineContext:
    """The timeline of a plan node, and which object gave it; no timeline for constants."""

    timeline: Timeline | None = None
    origin: str | None = None

    def combine(self, other: TimelineContext) -> TimelineContext:
        """Return the context of a node that reads both.

        >>> orders = TimelineContext(EPOCH_MS, "orders")
        >>> orders.combine(CONSTANT) == orders
        True
        >>> orders.combine(TimelineContext(External("cdc"), "cdc"))
        Traceback (most recent call last):
        reclock.errors.TimelineMismatch: multiple timelines within one dataflow are not supported
        detail: "orders" is in timeline EpochMilliseconds, "cdc" is in timeline External(cdc)
        hint: give both sources the same timeline with WITH (timeline = '…') if their \
times mean the same
        """
        if other.timeline is None or other.timeline == self.timeline:
            return self
        if self.timeline is None:
            return other
        message = "multiple timelines within one dataflow are not supported"
        detail = (
            f'"{self.origin}" is in timeline {self.timeline}, '
            f'"{other.origin}" is in timeline {other.timeline}'
        )
        hint = (
            "give both sources the same timeline with WITH (timeline = '…') "
            "if their times mean the same"
        )
        raise TimelineMismatch(message, detail=detail, hint=hint)


CONSTANT: Final = TimelineContext()


def combine_all(contexts: Iterable[TimelineContext]) -> TimelineContext:
    """Return the context of a node that reads all of ``contexts``."""
    result = CONSTANT
    for context in contexts:
        result = result.combine(context)
    return result

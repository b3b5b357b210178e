"""A source that does what a script says: records, pauses, new partitions, crashes, an end.

The source stands for the durable outside world: it outlives every engine that reads it.
``probe`` lets the script go on to its next ``PAUSE`` and returns the upstream frontier, as
a connector's probe does; ``read`` returns exact ranges, as often as asked. ``ABORT`` makes
the probe that reaches it raise ``ScriptAborted``, once: the engine dies there, and its
successor goes on behind the marker.

    >>> source = ScriptedSource([Record(0, "a"), PAUSE(), Record(1, "b"), EOF()])
    >>> source.probe()
    {[0] 1, (0, ∞) 0}
    >>> source.probe()
    {}
    >>> source.read(1, 0, 1)
    ['b']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.errors import Error, InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Record:
    """``data`` arrives at the end of ``partition``, which is born if it is new."""

    partition: int
    data: str


@dataclass(frozen=True, slots=True)
class NewPartition:
    """``partition`` is born, with nothing in it."""

    partition: int


@dataclass(frozen=True, slots=True)
class PAUSE:
    """The probe ends here; the next one goes on."""


@dataclass(frozen=True, slots=True)
class ABORT:
    """The engine dies at this point, once."""


@dataclass(frozen=True, slots=True)
class EOF:
    """The source is complete; nothing may follow."""


Event = Record | NewPartition | PAUSE | ABORT | EOF


class ScriptAborted(Error):
    """The script reached an ``ABORT``."""


class ScriptedSource:
    """A partitioned log that grows as its script says."""

    def __init__(self, script: Iterable[Event]) -> None:
        self._script = list(script)
        if any(isinstance(event, EOF) for event in self._script[:-1]):
            message = "EOF must be the last event of a script"
            raise InvalidValue(message)
        self._next = 0
        self._closed = False
        self._log: dict[int, list[str]] = {}

    @property
    def log(self) -> dict[int, list[str]]:
        """Everything that has arrived, by partition: what a reader should see."""
        return self._log

    @property
    def exhausted(self) -> bool:
        """Whether the script has nothing more to do."""
        return self._next == len(self._script)

    def extend(self, events: Iterable[Event]) -> None:
        """Let more events follow."""
        self._script.extend(events)

    def probe(self) -> Antichain[KafkaPosition]:
        """Let the script run to its next pause, and return the upstream frontier."""
        while self._next < len(self._script):
            event = self._script[self._next]
            self._next += 1
            match event:
                case Record(partition, data):
                    self._log.setdefault(partition, []).append(data)
                case NewPartition(partition):
                    self._log.setdefault(partition, [])
                case PAUSE():
                    break
                case ABORT():
                    message = "the script aborted the engine"
                    raise ScriptAborted(message)
                case EOF():
                    self._closed = True
        if self._closed:
            return Antichain()
        if not self._log:
            return Antichain.of(KafkaPosition.everything())
        return KafkaPosition.frontier({p: len(rows) for p, rows in self._log.items()})

    def read(self, partition: int, start: int, stop: int) -> list[str]:
        """Return the records in ``[start, stop)``; the same ones every time."""
        return self._log[partition][start:stop]

"""The durable text form of source positions, versioned.

One JSON object per element of a frontier, readable in any database shell::

    {"partition": 3, "offset": 50}                   a partition's next offset
    {"after": 3, "before": null, "offset": 0}        partitions not born yet
    {"file": "a.csv", "offset": 120}                 a file's next byte
    {"part": "orders/3", "offset": 50}               a partition's, of one of several topics
    {"sequence": 7}   {"lsn": "16/B374D848"}         counters, PostgreSQL

``Codec`` says how one gauge is written; a remap uses one for its life. What does not decode is
``Corrupt`` and names the text. ``VERSION`` is stored with the records and changes with this format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

from reclock.errors import Corrupt, Error, InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.order import T
from reclock.time.position import AFTER, BEFORE, FilePosition, KafkaPosition, TopicPosition
from reclock.time.timestamp import Lsn, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

VERSION: Final = 1

Json = dict[str, Any]


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How the positions of one gauge are written, and where such a source begins."""

    gauge: str
    origin: Antichain[T]
    to_json: Callable[[T], Json]
    from_json: Callable[[Json], T]

    def encode(self, position: T) -> str:
        """Return the durable text of ``position``.

        >>> KAFKA.encode(KafkaPosition.exact(3, 50))
        '{"partition":3,"offset":50}'
        """
        return json.dumps(self.to_json(position), separators=(",", ":"))

    def decode(self, text: str) -> T:
        """Read what ``encode`` wrote.

        >>> KAFKA.decode('{"partition":"x"}')
        Traceback (most recent call last):
        reclock.errors.Corrupt: invalid kafka position in durable state
        detail: the record is '{"partition":"x"}'
        """
        try:
            return self.from_json(json.loads(text))
        except (ValueError, KeyError, TypeError, Error) as error:
            message = f"invalid {self.gauge} position in durable state"
            raise Corrupt(message, detail=f"the record is {text!r}") from error

    def decode_all(self, texts: Collection[str]) -> dict[str, T]:
        """Read many texts at once: the JSON of all is parsed in one call.

        >>> KAFKA.decode_all(['{"partition":3,"offset":50}'])['{"partition":3,"offset":50}'].offset
        50
        """
        try:
            values = json.loads(f"[{','.join(texts)}]")
            if len(values) == len(texts):
                pairs = zip(texts, values, strict=True)
                return {text: self.from_json(value) for text, value in pairs}
        except (ValueError, KeyError, TypeError, Error):
            pass  # one of them is wrong: find out which
        return {text: self.decode(text) for text in texts}


def _kafka_to_json(position: KafkaPosition) -> Json:
    return _parts_to_json(position, "partition")


def _kafka_from_json(value: Json) -> KafkaPosition:
    return KafkaPosition(*_cuts(value, "partition", int), offset=_integer(value["offset"]))


def _file_to_json(position: FilePosition) -> Json:
    return _parts_to_json(position, "file")


def _file_from_json(value: Json) -> FilePosition:
    return FilePosition(*_cuts(value, "file", str), offset=_integer(value["offset"]))


def _topic_to_json(position: TopicPosition) -> Json:
    return _parts_to_json(position, "part")


def _topic_from_json(value: Json) -> TopicPosition:
    return TopicPosition(*_cuts(value, "part", str), offset=_integer(value["offset"]))


def _parts_to_json(position: KafkaPosition | FilePosition | TopicPosition, noun: str) -> Json:
    if position.part is not None:
        return {noun: position.part, "offset": position.offset}
    low, high = position.low, position.high
    if (low is not None and low[1] != AFTER) or (high is not None and high[1] != BEFORE):
        message = f"position {position} is no part of a frontier and is not stored"
        raise InvalidValue(message)
    after = low[0] if low is not None else None
    before = high[0] if high is not None else None
    return {"after": after, "before": before, "offset": position.offset}


def _cuts(value: Json, noun: str, kind: type) -> tuple[Any, Any]:
    """Return the two cuts around the parts that ``value`` names."""
    if noun in value:
        part = _expect(value[noun], kind)
        return (part, BEFORE), (part, AFTER)
    after, before = value["after"], value["before"]
    low = None if after is None else (_expect(after, kind), AFTER)
    high = None if before is None else (_expect(before, kind), BEFORE)
    return low, high


def _expect(value: object, kind: type) -> object:
    if type(value) is not kind:
        message = f"expected {kind.__name__}, got {value!r}"
        raise TypeError(message)
    return value


def _integer(value: object) -> int:
    if type(value) is not int:
        message = f"expected int, got {value!r}"
        raise TypeError(message)
    return value


KAFKA: Final = Codec(
    "kafka", Antichain.of(KafkaPosition.everything()), _kafka_to_json, _kafka_from_json
)
FILES: Final = Codec(
    "file", Antichain.of(FilePosition.everything()), _file_to_json, _file_from_json
)
TOPICS: Final = Codec(
    "topics", Antichain.of(TopicPosition.everything()), _topic_to_json, _topic_from_json
)
SEQUENCE: Final = Codec(
    "sequence",
    Antichain.of(Sequence(0)),
    lambda position: {"sequence": int(position)},
    lambda value: Sequence(_integer(value["sequence"])),
)
LSN: Final = Codec(
    "lsn",
    Antichain.of(Lsn(0)),
    lambda position: {"lsn": str(position)},
    lambda value: Lsn.parse(value["lsn"]),
)

"""A generator as a source: a log of one partition that grows with each probe.

The offset of a generator is the number of its events. There is nothing upstream to ask:
each probe says that ``events_per_tick`` more of them have come than are bound, so a
intake that probes once a tick gets that many each tick, whatever the clock does. What
is bound can be read again, here or in any other process, to the last bit (P2), which is
also why nothing can regress.

Batches have the columns ``partition, offset, …the relation's…, diff``, at most 16 384
events each: 9 MiB of the widest. A generator that has come to ``LIMIT`` events stands still.

Tests: tests/connectors/generator/test_generator_source.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from reclock.connectors.generator.auction import EPOCH, FIELDS, Auction
from reclock.connectors.generator.bank import ACCOUNTS, Bank
from reclock.connectors.generator.counter import Counter
from reclock.connectors.generator.model import ARROW, LIMIT, VERSION
from reclock.connectors.spans import spans_of
from reclock.errors import InvalidValue, NewerFormat
from reclock.time.position import KafkaPosition, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reclock.connectors.generator.model import Column, Generator
    from reclock.remap.batch import Range
    from reclock.time.antichain import Antichain

PARTITION: Final = 0
_BATCH_EVENTS: Final = 1 << 14

OPTIONS: Final = {
    "counter": ("seed", "events_per_tick", "max_cardinality"),
    "auction": ("seed", "events_per_tick", "relation"),
    "bank": ("seed", "events_per_tick", "accounts"),
}
"""The kinds of generators, and what can be said of each."""

EVENTS_PER_TICK: Final = {"counter": 1, "auction": EPOCH, "bank": 10}


@dataclass(frozen=True, slots=True)
class GeneratorReader:
    """Makes the rows of exact ranges of events."""

    generator: Generator

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        values = [(column.name, ARROW[column.type]) for column in self.generator.columns]
        return pa.schema(
            [("partition", pa.int32()), ("offset", pa.int64()), *values, ("diff", pa.int64())]
        )

    def read(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``ranges``; events that have none are gaps."""
        for _, start, stop in spans_of(ranges):
            first, last = self.generator.before(start), self.generator.before(stop)
            for begin in range(first, last, _BATCH_EVENTS):
                yield self._batch(begin, min(begin + _BATCH_EVENTS, last))

    def grain(self, part: int | str) -> int:
        """Return 1: positions are events."""
        del part
        return 1

    def _batch(self, first: int, last: int) -> pa.RecordBatch:
        offsets, columns, diffs = self.generator.rows(first, last)
        partitions = np.full(len(offsets), PARTITION, np.int32)
        arrays = [pa.array(partitions), pa.array(offsets), *columns, pa.array(diffs)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True, slots=True)
class GeneratorSource:
    """A load generator, and how many of its events come with each probe."""

    generator: Generator
    events_per_tick: int

    @classmethod
    def create(cls, kind: str, options: Mapping[str, str]) -> tuple[Self, Antichain[KafkaPosition]]:
        """Return the source that the options describe, and the origin at which it begins."""
        return cls.open(kind, options, {"version": VERSION}), KafkaPosition.frontier({})

    @classmethod
    def open(cls, kind: str, options: Mapping[str, str], facts: Mapping[str, object]) -> Self:
        """Return a source that was created before, with the ``facts`` it had then."""
        if facts.get("version") != VERSION:
            message = "the events of this load generator are of another version of reclock"
            detail = f"it was created with {facts.get('version')!r}; this reclock has {VERSION}"
            raise NewerFormat(message, detail=detail, hint="upgrade reclock and try again")
        if kind not in OPTIONS:
            message = f'there is no load generator "{kind}"'
            raise InvalidValue(message, hint=f"write {', '.join(OPTIONS).upper()}")
        for name in options:
            if name not in OPTIONS[kind]:
                message = f'load generator {kind.upper()} has no option "{name}"'
                raise InvalidValue(message, hint=f"it has {', '.join(OPTIONS[kind])}")
        tick = _number(options, "events_per_tick", EVENTS_PER_TICK[kind], 1, LIMIT)
        return cls(_generator(kind, options), tick)

    @property
    def facts(self) -> dict[str, object]:
        """What must be kept with the source, besides its options, to open it again."""
        return {"version": VERSION}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the relation: there is nothing to declare."""
        return self.generator.columns

    @property
    def reader(self) -> GeneratorReader:
        """What makes the rows, here or in another process."""
        return GeneratorReader(self.generator)

    def probe(self, bound: Antichain[KafkaPosition]) -> Antichain[KafkaPosition]:
        """Return the frontier with so many more events than are bound."""
        at = offsets_of(bound).get(PARTITION, 0)
        return KafkaPosition.frontier({PARTITION: max(at, min(at + self.events_per_tick, LIMIT))})

    def verify(self) -> None:
        """Do nothing: events are what they are."""


def _generator(kind: str, options: Mapping[str, str]) -> Generator:
    seed = _number(options, "seed", 0, 0, 2**63 - 1)
    if kind == "counter":
        most = "max_cardinality"
        return Counter(_number(options, most, 0, 1, LIMIT) if most in options else None)
    if kind == "bank":
        return Bank(seed, _number(options, "accounts", ACCOUNTS, 2, 2**32 - 1))
    relation = options.get("relation", "bid").lower()
    if relation not in FIELDS:
        message = f'load generator AUCTION has no relation "{relation}"'
        raise InvalidValue(message, hint=f"its relations are {', '.join(FIELDS)}")
    return Auction(seed, relation)


def _number(options: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = options.get(name, str(default)).strip()
    value = int(text) if text.isascii() and text.removeprefix("-").isdigit() else None
    if value is None or not least <= value <= most:
        message = f'option "{name}" must be a whole number from {least} to {most}, got {text}'
        raise InvalidValue(message)
    return value

"""The start of a source: START OFFSET and START TIMESTAMP, resolved once, at its creation.

The answer is a frontier, the *origin* of the source's remap: positions before it belong to
no time. It is fixed for ever: a restart, or another reader, begins at the same records
(P2). Without a start a source begins at the first records that are still there; partitions
born later begin at 0.

Tests: tests/connectors/kafka/test_source.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.errors import InvalidValue, PositionsLost, SourceUnavailable
from reclock.time.position import KafkaPosition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.kafka.cluster import Cluster, Topic, Watermarks
    from reclock.time.antichain import Antichain


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first record that each partition still has."""


@dataclass(frozen=True, slots=True)
class Latest:
    """What comes after the source is created."""


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """The offset of partition 0, 1, …; partitions not listed begin at their first record."""

    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StartTimestamp:
    """The first record of each partition written at or after a time; its end if none was."""

    ms: int


Start = Earliest | Latest | StartOffsets | StartTimestamp


def parse_start_offset(text: str) -> Start:
    """Return what ``start_offset`` says.

    >>> parse_start_offset("latest"), parse_start_offset("10, 0")
    (Latest(), StartOffsets(offsets=(10, 0)))
    """
    named: dict[str, Start] = {"earliest": Earliest(), "latest": Latest()}
    if (found := named.get(text.strip().lower())) is not None:
        return found
    if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text, re.ASCII):
        message = f'invalid start offset "{text}"'
        hint = "write 'earliest', 'latest', or the offsets of partition 0, 1, …: '10,0,25'"
        raise InvalidValue(message, hint=hint)
    return StartOffsets(tuple(int(part) for part in text.split(",")))


def resolve(start: Start, cluster: Cluster, name: str, topic: Topic) -> Antichain[KafkaPosition]:
    """Return the frontier at which a source of topic ``name`` begins."""
    marks = cluster.watermarks(name, topic.partitions)
    _check_all(name, topic, marks)
    match start:
        case Earliest():
            offsets = {p: mark.low for p, mark in marks.items()}
        case Latest():
            offsets = {p: mark.high for p, mark in marks.items()}
        case StartTimestamp(ms):
            found = cluster.offsets_at(name, marks, ms)
            _check_all(name, topic, found)
            offsets = {
                p: mark.high if (at := found[p]) is None else max(mark.low, min(at, mark.high))
                for p, mark in marks.items()
            }
        case StartOffsets(wanted):
            offsets = _checked(name, wanted, marks)
    return KafkaPosition.frontier(offsets)


def _check_all(name: str, topic: Topic, answered: Mapping[int, object]) -> None:
    """Refuse to begin where not every partition has answered."""
    if leaderless := sorted(set(topic.partitions) - answered.keys()):
        message = f'partition {leaderless[0]} of topic "{name}" has no leader'
        raise SourceUnavailable(message, hint="a source begins when all partitions are there")


def _checked(name: str, wanted: tuple[int, ...], marks: dict[int, Watermarks]) -> dict[int, int]:
    """Return the offsets that were asked for, each of which must be there."""
    if extra := [p for p in range(len(wanted)) if p not in marks]:
        message = (
            f'topic "{name}" has no partition {extra[0]} to start at offset {wanted[extra[0]]}'
        )
        raise InvalidValue(message, detail=f"its partitions are {_listed(marks)}")
    for partition, offset in enumerate(wanted):
        low, high = marks[partition]
        if offset > high:
            message = f"start offset {offset} is beyond the end of partition {partition}"
            raise InvalidValue(message, detail=f'topic "{name}" has offsets {low} to {high} there')
        if offset < low:
            message = f"start offset {offset} of partition {partition} is no longer there"
            detail = f'topic "{name}" begins at offset {low} there'
            raise PositionsLost(message, detail=detail, hint=f"start at {low}, or at 'earliest'")
    return {p: wanted[p] if p < len(wanted) else mark.low for p, mark in marks.items()}


def _listed(marks: dict[int, Watermarks]) -> str:
    return ", ".join(map(str, sorted(marks)))

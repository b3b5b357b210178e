"""The two topics of a sink: made if they are missing, checked if they are there.

========================  ==============================================================
data                      as many partitions as asked for; an existing one keeps its settings.
                          Refused: another number of partitions than asked for; compaction,
                          if messages have no keys
consistency               one partition, so that progress has one order; compacted, so that it
                          stays small. Refused: more partitions; records that are deleted after
                          a while, because progress that is gone is everything written twice
========================  ==============================================================

Without ``reuse_topic`` the data topic's name has the sink's id, the time and a nonce, and belongs
to this sink alone. With it, whether a topic that is there may be gone on with is not decided here
but by the bindings, which know whether this sink wrote it: ``Topics.made`` says what was found.

Invariant: nothing is changed in a topic that is there. Keeps P4.

Tests: tests/sinks/test_topics.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from reclock.errors import InvalidDefinition, InvalidValue, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.kafka.cluster import Topic

LONGEST_NAME: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")

CONSISTENCY: Final = {
    "cleanup.policy": "compact",
    # The newest segment is never compacted: small ones keep idle progress small.
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
"""The settings of a consistency topic that reclock makes."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made; where a number is None the broker's default is taken."""

    name: str
    partitions: int | None = None
    replication: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)


class Admin(Protocol):
    """What is asked of a cluster; ``SinkUnavailable`` or ``SinkStopped`` if it does not do it."""

    def describe(self, topic: str) -> Topic | None:
        """Return the topic, or None if there is none of this name."""
        ...

    def settings(self, topic: str) -> Mapping[str, str]:
        """Return the settings of a topic that is there."""
        ...

    def create(self, topic: NewTopic) -> bool:
        """Make a topic; return False if there is one of this name already."""
        ...


class Topics(NamedTuple):
    """The topics of a sink as they are now, and which of them were made just now."""

    data: Topic
    consistency: Topic
    made: frozenset[str]


def own_name(prefix: str, sink: str, start_ms: int, nonce: str) -> str:
    """Return the name of a topic that is this sink's alone, since this start.

    >>> own_name("sales", "u9", 1700000000000, "5f3a")
    'sales-u9-1700000000000-5f3a'
    """
    return f"{prefix}-{sink}-{start_ms}-{nonce}"


def consistency_name(topic: str) -> str:
    """Return the consistency topic of a data topic, if no other is named.

    >>> consistency_name("sales")
    'sales-consistency'
    """
    return f"{topic}-consistency"


def prepared(
    admin: Admin,
    topic: str,
    consistency: str,
    *,
    keyed: bool,
    partitions: int | None = None,
    replication: int | None = None,
) -> Topics:
    """Return both topics, made if they are missing; ``keyed`` if messages have keys."""
    check_name(topic)
    check_name(consistency)
    if topic == consistency:
        message = f'topic "{topic}" cannot be its own consistency topic'
        raise InvalidDefinition(message, hint="give consistency_topic another name")
    made = set()
    if admin.describe(topic) is None and admin.create(NewTopic(topic, partitions, replication)):
        made.add(topic)
    wanted = NewTopic(consistency, 1, replication, CONSISTENCY)
    if admin.describe(consistency) is None and admin.create(wanted):
        made.add(consistency)
    data, progress = _there(admin, topic), _there(admin, consistency)
    if topic not in made:
        _check_data(admin, topic, data, partitions, keyed=keyed)
    if consistency not in made:
        check_consistency(admin, consistency, progress)
    return Topics(data, progress, frozenset(made))


def check_name(topic: str) -> None:
    """Refuse a name that Kafka does not take.

    >>> check_name("sales 2026")
    Traceback (most recent call last):
    reclock.errors.InvalidValue: invalid topic name "sales 2026"
    hint: use at most 249 letters, digits, dots, underscores and hyphens
    """
    if not _NAME.fullmatch(topic) or len(topic) > LONGEST_NAME or topic in (".", ".."):
        message = f'invalid topic name "{topic}"'
        hint = f"use at most {LONGEST_NAME} letters, digits, dots, underscores and hyphens"
        raise InvalidValue(message, hint=hint)


def check_consistency(admin: Admin, name: str, found: Topic) -> None:
    """Refuse a topic in which progress has no order, or is lost."""
    if len(found.partitions) != 1:
        message = f'consistency topic "{name}" has {len(found.partitions)} partitions'
        hint = "it must have one; name another, or let reclock make it"
        raise InvalidDefinition(message, hint=hint)
    settings = admin.settings(name)
    policy = settings.get("cleanup.policy", "delete")
    kept = all(settings.get(limit) == "-1" for limit in ("retention.ms", "retention.bytes"))
    if "delete" in policy and not kept:
        message = f'consistency topic "{name}" deletes old records'
        detail = f"cleanup.policy is {policy}: the progress of an idle sink would be lost"
        hint = "set cleanup.policy to compact"
        raise InvalidDefinition(message, detail=detail, hint=hint)


def _check_data(
    admin: Admin, name: str, found: Topic, partitions: int | None, *, keyed: bool
) -> None:
    if partitions is not None and len(found.partitions) != partitions:
        message = f'topic "{name}" has {len(found.partitions)} partitions, not {partitions}'
        raise InvalidDefinition(message, hint="leave out partitions, or name another topic")
    if not keyed and "compact" in admin.settings(name).get("cleanup.policy", ""):
        message = f'topic "{name}" is compacted, and takes no messages without keys'
        raise InvalidDefinition(message, hint="give the sink a KEY, or name another topic")


def _there(admin: Admin, name: str) -> Topic:
    found = admin.describe(name)
    if found is None:
        message = f'topic "{name}" was made and cannot be seen yet'
        hint = "run the statement again; a sink that exists is tried again by itself"
        raise SinkUnavailable(message, hint=hint)
    return found

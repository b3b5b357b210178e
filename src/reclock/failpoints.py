"""Named places where a test, or an operator's drill, makes a durable step fail.

Every durable step calls ``hit("name")`` just where a crash would hurt most. Nothing
happens unless the name is armed, by the environment or by a test::

    RECLOCK_FAILPOINTS="tick.publish.before=exit;durable.commit.after=sleep:500"

Actions: ``exit`` ends the process at once, as ``kill -9`` would (no handlers, no
flushing); ``raise`` raises ``FailpointRaised``; ``sleep:ms`` waits. ``NAMES`` lists every
name with the step it guards; arming or hitting any other name is an error, so a test
cannot pass because of a misspelt name. An unarmed ``hit`` costs one dictionary look-up.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reclock.errors import Error, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ENVIRONMENT: Final = "RECLOCK_FAILPOINTS"

EXIT_STATUS: Final = 137
"""What a process killed by signal 9 reports to a shell."""

NAMES: Final[dict[str, str]] = {
    "durable.append.before": "an append is checked, nothing is written yet",
    "durable.commit.before": "everything is written, the transaction is not committed",
    "durable.commit.after": "the transaction is committed, the caller does not know yet",
    "durable.compact.before": "a compaction is checked, nothing is rewritten yet",
    "durable.compact.folded": "a compaction is written, its transaction is not committed",
    "durable.compact.after": "a compaction is committed, the caller does not know yet",
    "arrangement.segment.before_rename": "a segment is written, it has no name yet",
    "arrangement.segment.after_rename": "a segment has its name, no manifest names it yet",
    "write.read.after": "what a write reads was read before its turn, nothing is written yet",
    "write.append.before": "the rows of a write are checked and encoded, not durable yet",
    "write.append.after": "a write is durable, its client does not know yet",
    "tick.compute.before": "the writes of a tick are gathered, nothing is computed yet",
    "tick.land.before": "the runs of a tick are written, it is not its turn to publish yet",
    "tick.refit.after": "a tick is fitted to objects that came and went, nothing is published yet",
    "tick.publish.before": "it is the turn of a tick to publish, nothing is published yet",
    "tick.publish.after": "a tick is published, the engine does not know yet",
    "merge.write.before": "runs are about to be merged in the background, nothing is written yet",
    "merge.write.after": "merged runs are written, no tick has published them yet",
    "renewal.derive.before": "retractions are about to be derived, nothing is computed yet",
    "renewal.derive.after": "derived retractions are written, no tick has published them yet",
    "ddl.prepare.before": "a new object is about to be filled, nothing is done",
    "ddl.prepare.after": "a new object is filled, the last times are missing",
    "ddl.publish.before": "a new object is hydrated, the catalog does not name it yet",
    "sequence.reserve.before": "numbers of a sequence are asked for, none is reserved yet",
    "sequence.reserve.after": "numbers of a sequence are reserved, none is given yet",
    "ddl.publish.after": "a change of the catalog is published, its client does not know yet",
    "ingest.read.after": "records were read ahead, no tick has bound them yet",
    "ingest.bind.before": "a tick is about to bind what was read, nothing is computed yet",
    "postgres.slot.noted": "a replication slot is written down, neither it nor its source is made",
    "postgres.slot.made": "a replication slot is made, nothing is copied at its snapshot yet",
    "postgres.copy.table": "a table is copied at the snapshot, others may be still to come",
    "postgres.copy.after": "all tables are copied, no tick has bound them yet",
    "postgres.large.before": "a large transaction is in a file, no piece of it is written yet",
    "postgres.refresh.copied": "tables are copied again, the old ones are still there",
    "postgres.acknowledge.before": "the log is bound durably, its server does not know yet",
    "postgres.acknowledge.after": "the server knows how far its log is bound",
    "postgres.slot.drop.before": "a source is gone, its replication slot is still there",
    "postgres.slot.drop.after": "a replication slot is dropped, it is still written down",
    "sink.begin.before": "closed times are encoded, the sink's transaction is not begun",
    "sink.produce.after": "data is produced, its transaction is open",
    "sink.progress.before": "the sink is about to produce its progress in that transaction",
    "sink.commit.before": "data and progress are produced, not committed",
    "sink.commit.after": "data and progress are committed, the sink does not know yet",
    "sink.hold.before": "a sink is about to let go of the history that it has committed",
    "sink.report.before": "the sink knows its new frontier, its caller does not yet",
}


class FailpointRaised(Error):
    """An armed failpoint raised, as it was told to."""

    sqlstate = "XX000"


Action = str
"""``exit``, ``raise`` or ``sleep:<milliseconds>``."""

_armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    """Do what ``name`` is armed with: usually nothing."""
    if name not in NAMES:
        message = f'unknown failpoint "{name}"'
        raise InvalidValue(message, hint="declare it in reclock.failpoints.NAMES")
    action = _armed.get(name)
    if action is not None:
        action()


def arm(name: str, action: Action | Callable[[], None]) -> None:
    """Make ``name`` do ``action`` from now on."""
    if name not in NAMES:
        message = f'unknown failpoint "{name}"'
        known = ", ".join(sorted(NAMES))
        raise InvalidValue(message, hint=f"known failpoints: {known}")
    _armed[name] = action if callable(action) else _parse_action(name, action)


def disarm(name: str) -> None:
    """Make ``name`` do nothing again."""
    _armed.pop(name, None)


@contextmanager
def armed(points: Mapping[str, Action | Callable[[], None]]) -> Iterator[None]:
    """Arm ``points`` inside the block, and disarm them however it ends.

    >>> with armed({"durable.commit.before": "raise"}):
    ...     hit("durable.commit.before")
    Traceback (most recent call last):
    reclock.failpoints.FailpointRaised: failpoint durable.commit.before raised
    """
    try:
        for name, action in points.items():
            arm(name, action)
        yield
    finally:
        for name in points:
            disarm(name)


def arm_from_environment(text: str | None = None) -> None:
    """Arm what ``RECLOCK_FAILPOINTS`` (or ``text``) says."""
    text = os.environ.get(ENVIRONMENT, "") if text is None else text
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, action = entry.partition("=")
        if not equals:
            message = f'invalid failpoint "{entry}"'
            raise InvalidValue(message, hint="write name=exit, name=raise or name=sleep:500")
        arm(name.strip(), action.strip())


def _parse_action(name: str, action: Action) -> Callable[[], None]:
    if action == "exit":
        return lambda: os._exit(EXIT_STATUS)
    if action == "raise":

        def fail() -> None:
            message = f"failpoint {name} raised"
            raise FailpointRaised(message)

        return fail
    verb, _, ms = action.partition(":")
    if verb == "sleep" and ms.isdigit():
        return lambda: time.sleep(int(ms) / 1_000)
    message = f'invalid failpoint action "{action}"'
    raise InvalidValue(message, hint="write exit, raise or sleep:<milliseconds>")


arm_from_environment()

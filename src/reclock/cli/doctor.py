"""``reclock doctor``: is this machine fit, is this state whole; and if not, what to do.

Each examination is a function that returns findings: what was looked at, whether it is right, what
was found, and what to do if it is not. Only what is asked for is touched: Kafka if a broker is
named, a state if there is one. Tests: tests/cli/test_doctor.py.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Unpack

import click

from reclock.cli import options
from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reclock.cli.options import Elsewhere
    from reclock.session.database import Database

NEEDED_GB: Final = 1.0
MAX_SKEW_MS: Final = 1_000
_PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Finding:
    """What an examination has found."""

    what: str
    right: bool
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = click.style("ok  ", "green") if self.right else click.style("BAD ", "red", bold=True)
        fix = "" if self.right or not self.remedy else f"\n     to do: {self.remedy}"
        return f"{mark} {self.what}: {self.found}{fix}"


@click.command(short_help="Is this machine fit, is a state whole; and if not, what to do.")
@options.looked_at
@click.option("--broker", help="A Kafka broker, host:port, to try.")
def doctor(state: Path, broker: str | None, **elsewhere: Unpack[Elsewhere]) -> None:
    """Examine this machine, a broker and a state; say what to do about what is wrong."""
    sick = False
    for finding in examine(state, broker, **elsewhere):
        click.echo(str(finding))
        sick = sick or not finding.right
    if sick:
        raise SystemExit(1)


def examine(state: Path, broker: str | None, **elsewhere: Unpack[Elsewhere]) -> Iterator[Finding]:
    """Yield what is found, as it is found."""
    yield python()
    yield java()
    yield disk(state)
    if broker is not None:
        yield from kafka(broker)
    if elsewhere.get("meta") or (state / "reclock.db").exists():
        yield from whole(state, **elsewhere)
    else:
        yield Finding("state", True, f"there is none in {state} yet")


def python() -> Finding:
    """Look at this Python."""
    return Finding("python", True, ".".join(map(str, sys.version_info[:3])))


def java() -> Finding:
    """Look for a Java that Spark runs on."""
    from reclock.java import find_java  # noqa: PLC0415

    try:
        return Finding("java", True, str(find_java()))
    except Error as error:
        return Finding("java", False, error.message, error.hint or "")


def disk(state: Path) -> Finding:
    """Look how much space there is where the state is, or would be."""
    place = state.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 1e9
    remedy = f"free some space, or use --state on a larger disk; {NEEDED_GB:.0f} GB is little"
    return Finding("disk", free >= NEEDED_GB, f"{free:.1f} GB free at {place}", remedy)


def kafka(broker: str) -> Iterator[Finding]:
    """Ask a broker for its topics."""
    from reclock.connectors.kafka.client import KafkaCluster  # noqa: PLC0415
    from reclock.connectors.kafka.options import Connection  # noqa: PLC0415

    try:
        KafkaCluster(Connection.of(broker, {}), _PATIENCE_SECONDS).describe("reclock-doctor")
    except Error as error:
        remedy = (
            "see that the address is right and that a broker runs there; one of this machine's own "
        )
        remedy += "is `reclock dev kafka start`"
        yield Finding("kafka", False, error.message, remedy)
        return
    yield Finding("kafka", True, f"{broker} answers")


def slots(db: Database) -> Iterator[Finding]:
    """Name the replication slots that keep a server's log for no reader any more."""
    for noted in db.failed_slots():
        found = f'source "{noted.source}" has failed, and its replication slot "{noted.name}" '
        found += f"keeps the log of {noted.connection.shown}"
        remedy = f'DROP SOURCE "{noted.source}", and create it again'
        yield Finding("postgres", False, found, remedy)
    for noted, there in db.left_behind_slots():
        where = noted.connection.shown
        said = f'replication slot "{noted.name}" of source "{noted.source}" was left behind'
        found = f"{said}: {where} does not answer" if there is None else f"{said}: {where}"
        drop = f"SELECT pg_drop_replication_slot('{noted.name}')"
        remedy = f"{drop} there; reclock tries it when it starts"
        if there is not False:
            yield Finding("postgres", False, found, remedy)


def whole(state: Path, **elsewhere: Unpack[Elsewhere]) -> Iterator[Finding]:
    """Look whether the parts of a state fit each other, and the clock of this machine."""
    from reclock.clock import SystemClock  # noqa: PLC0415
    from reclock.session.offline import look  # noqa: PLC0415
    from reclock.time.timeline import EPOCH_MS  # noqa: PLC0415

    try:
        with look(state, **elsewhere) as db:
            yield from slots(db)
            broken = db.check()
            timelines = dict(db.execute("SELECT timeline, write_ts FROM reclock.timelines").rows)
            ahead = timelines.get(str(EPOCH_MS))
        if broken and any(elsewhere.values()):  # its owner may have merged files meanwhile
            with look(state, **elsewhere) as db:
                broken = [finding for finding in db.check() if finding in broken]
    except Error as error:
        yield Finding("state", False, error.message, error.hint or "")
        return
    for finding in broken:
        detail = f" ({finding.detail})" if finding.detail else ""
        remedy = "keep a copy of the directory and report it"
        yield Finding("state", False, f"{finding.object}: {finding.message}{detail}", remedy)
    if not broken:
        where = "the database of --meta" if elsewhere.get("meta") else state
        yield Finding("state", True, f"{where} is whole")
    skew = 0 if ahead is None else int(ahead) - SystemClock().now_ms()
    found = "not behind the state's" if skew <= MAX_SKEW_MS else f"{skew} ms behind the state's"
    yield Finding("clock", skew <= MAX_SKEW_MS, found, "set the clock: nothing ticks until then")

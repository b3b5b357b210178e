"""Failures in the background, for operators: reported when they begin and when they end.

Looked at now and then: sources and sinks that are stalled or have failed, ticks that fail, errors
that views and sources hold, and records that were skipped. Each is said when it begins, again when
the reason changes, and when it has ended; how many records a source has skipped, when that has
doubled. So what stays wrong fills no log. Tests: tests/cli/test_watch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.cli.log import Log
    from reclock.session.database import Database

_FAILING: Final = ("stalled", "failed")
_STATES: Final = {
    "source": "SELECT source, state, detail FROM reclock.source_status",
    "sink": "SELECT sink, state, detail FROM reclock.sink_status",
}
_SKIPPED: Final = "SELECT source, skipped FROM reclock.source_status WHERE skipped > 0"
_ERRORS: Final = "SELECT object, code, message, detail FROM reclock.errors"

Wrong = dict[tuple[str, str], tuple[str, str | None, str | None]]
"""What is wrong with what: by kind and name, its state, the reason and the code."""


class Watch:
    """Says in a log what has begun or ceased to be wrong; ``look`` looks again."""

    def __init__(self, db: Database, log: Log) -> None:
        self._db = db
        self._log = log
        self._wrong: Wrong = {}
        self._skipped: dict[str, int] = {}

    def look(self) -> None:
        """Say what has changed since the last look."""
        now = dict(self._found())
        for what, (state, reason, code) in now.items():
            if self._wrong.get(what, ("", "", ""))[:2] != (state, reason):
                self._say(what, state, reason, code)
        for what in self._wrong.keys() - now.keys():
            self._say(what, "running", None, None)
        self._wrong = now
        for source, skipped in self._db.execute(_SKIPPED).rows:
            if skipped >= 2 * self._skipped.get(source, 0):
                self._skipped[source] = skipped
                words = f"source {source} has skipped {skipped} records: see reclock.dead_letters"
                self._log.say("skipped", words, level="warning", name=source, skipped=skipped)

    def _found(self) -> Iterator[tuple[tuple[str, str], tuple[str, str | None, str | None]]]:
        codes = codes_of(self._db)
        for kind, query in _STATES.items():
            for name, state, detail in self._db.execute(query).rows:
                if state in _FAILING:
                    yield (kind, name), (state, detail, codes.get((kind, name)))
        for name, code, message, detail in self._db.execute(_ERRORS).rows:
            if name is None:  # of the loop; the detail counts attempts
                yield ("tick", message), ("failing", message, code)
            else:
                yield ("error", name), ("failing", f"{message} ({detail})", code)

    def _say(self, what: tuple[str, str], state: str, reason: str | None, code: str | None) -> None:
        kind, name = what
        shown = {"tick": "ticks", "error": f"reads of {name}"}.get(kind, f"{kind} {name}")
        given = None if kind == "tick" else name
        told = f"{shown}: {state}" + ("" if reason is None else f": {reason}")
        level = "info" if state == "running" else "error" if state == "failed" else "warning"
        self._log.say(kind, told, level=level, name=given, state=state, code=code, detail=reason)


def codes_of(db: Database) -> dict[tuple[str, str], str]:
    """Return the codes of what is wrong with sources and sinks, by kind and name."""
    found = [("source", x.name, x.why) for x in db.facts.sources()]
    found += [("sink", x.name, x.why) for x in db.facts.sinks()]
    return {(kind, name): why.code for kind, name, why in found if why is not None}

"""``/api/time``: the bindings of sources, numbered as they are noticed, for pages that follow them.

A page says the number up to which it knows all, and gets what came since, so a look costs what is
new and not what is kept. Numbers go on over restarts: they begin with the clock of the process, so
one of an earlier process is before all of them, and its page gets everything again. A binding never
changes; getting it twice does no harm. Of each source the last ``KEPT`` are remembered, also those
that the database has folded since.

Noticing is one page's turn for all (``looks``); what is sent was written as JSON once.

Tests: tests/server/http/test_remaps.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reclock.server.http.values import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.ids import ObjectId
    from reclock.session.database import Database

KEPT: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Steps:
    """The last bindings of a source: their numbers and texts, oldest first."""

    name: str
    last: int = -1
    """The time of the last."""
    texts: tuple[tuple[int, bytes], ...] = ()

    def after(self, number: int) -> list[bytes]:
        found = []
        for at, text in reversed(self.texts):
            if at <= number:
                break
            found.append(text)
        return found[::-1]


class Remaps:
    """The bindings of one database's sources."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: tuple[int, Mapping[ObjectId, _Steps]] = db.now_ms * 1_000, {}
        """The last number, and the sources; always replaced as one."""

    def look(self) -> list[dict[str, Any]]:
        """Notice what is new; return who holds what. Not at once in two threads."""
        number, before = self._known
        sources: dict[ObjectId, _Steps] = {}
        for source, name, after in self._db.facts.bindings():
            steps = before.get(source)
            if steps is None or steps.name != name:  # under another name all of it is new
                steps = _Steps(name)
            if found := after(steps.last):
                texts = [(number + n, dumps(bound)) for n, bound in enumerate(found, 1)]
                number += len(found)
                steps = _Steps(name, found[-1].time, (*steps.texts, *texts)[-KEPT:])
            sources[source] = steps
        self._known = number, sources
        return [held._asdict() for held in self._db.facts.holders()]

    def since(self, number: int, holds: bytes) -> bytes:
        """Return every source with what came after a number, as JSON, and ``holds``."""
        last, sources = self._known
        if number > last:  # it is of a process whose clock was ahead
            number = 0
        told = b",".join(
            b'{"id":%b,"name":%b,"steps":[%b]}'
            % (dumps(str(source)), dumps(steps.name), b",".join(steps.after(number)))
            for source, steps in sources.items()
        )
        return b'{"next":%d,"sources":[%b],"holds":%b}' % (last, told, holds)

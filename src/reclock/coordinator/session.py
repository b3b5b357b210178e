"""A session: settings of its own, and statements one after the other.

Statements of one text run in order; each is atomic by itself, and the result is that of
the last. An error ends the text where it stands; what ran before it stays done, and the
session can be used on.

Tests: tests/coordinator/test_session.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.result import Result
from reclock.coordinator.sequence import run
from reclock.coordinator.sequence.context import Context
from reclock.coordinator.settings import SessionSettings
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from reclock.coordinator.core import Core


class Session:
    """One user's settings over a core that all share."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.settings = SessionSettings(core.settings)

    def execute(self, sql: str, parameters: tuple[object, ...] = ()) -> Result:
        """Run all statements of ``sql`` and return the result of the last one."""
        result = Result("")
        for parsed in parse_statements(sql):
            context = Context(self.core, self.settings, parsed.text, parameters)
            result = run(context, parsed.statement)
        return result

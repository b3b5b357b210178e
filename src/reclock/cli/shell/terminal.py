r"""The shell on a terminal: history, several lines, completion of names.

prompt_toolkit does the editing. Names come from the catalog each time: what was just created can
be completed. Tests: tests/cli/test_sql.py, through a pseudo-terminal.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.history import FileHistory

from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from reclock.cli.shell.shell import Shell
    from reclock.server.client import RemoteDatabase
    from reclock.session.database import Database

WORDS: Final = """
ALTER AS BEGIN BY COMMIT COPY COUNT CREATE DELETE DISTINCT DROP ENVELOPE EXCEPT EXPLAIN FORMAT FROM
GROUP HAVING INDEX INSERT INTERSECT INTO JOIN KAFKA KEY LIMIT MATERIALIZED ORDER PROGRESS RETAIN
ROLLBACK SELECT SET SHOW SINK SNAPSHOT SOURCE SUBSCRIBE SYSTEM TABLE TIMESTAMP UNION UPDATE UPSERT
VALUES VIEW WHERE WITH
""".split()  # noqa: SIM905 - a list of words is read better so
_NAME: Final = re.compile(r"[\w.]+$")


class Names(Completer):
    """Completes words of SQL, and the names of objects and their columns."""

    def __init__(self, db: Database | RemoteDatabase) -> None:
        self._db = db

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor may become."""
        del complete_event
        found = _NAME.search(document.text_before_cursor)
        begun = found[0] if found else ""
        if not begun:
            return
        for word in sorted({*self._names(), *WORDS}, key=str.lower):
            if word.lower().startswith(begun.lower()):
                yield Completion(word, start_position=-len(begun))

    def _names(self) -> list[str]:
        try:
            objects = self._db.execute("SELECT name, kind FROM reclock.objects").rows
        except Error:
            return []
        system = "system relation"
        return [f"reclock.{name}" if kind == system else name for name, kind in objects]


def converse(db: Database | RemoteDatabase, shell: Shell) -> None:
    """Read and run until the user leaves."""
    history = platformdirs.user_state_path("reclock") / "sql-history"
    history.parent.mkdir(parents=True, exist_ok=True)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)), completer=Names(db), complete_while_typing=False
    )
    while not shell.left:
        try:
            shell.feed(session.prompt("reclock-> " if shell.waiting else "reclock=> ") + "\n")
        except KeyboardInterrupt:
            shell.drop()
        except EOFError:
            return

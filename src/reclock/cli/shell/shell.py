r"""The shell: statements in, text out; knows nothing of terminals.

``feed`` takes text as it comes and runs what is whole: statements that end with a semicolon,
lines that begin with a backslash. What is left is the beginning of a statement. An error is
printed with its detail, hint and place, and the statements after it in the same text are not
run: ``failed`` says that there was one.

Tests: tests/cli/test_shell.py.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from reclock.cli.shell.meta import HELP, Ask, Do, command
from reclock.errors import Error, InvalidSyntax, InvalidValue
from reclock.rows.text_table import cells, records, table
from reclock.sql.parse import parse_statements
from reclock.sql.parse.dialect import tokenize
from reclock.sql.statement.copy import Copy
from reclock.sql.statement.subscribe import Subscribe

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.rows.result import Result
    from reclock.server.client import RemoteDatabase
    from reclock.session.database import Database
    from reclock.sql.statement import Parsed

_FETCH_SECONDS: Final = 0.2
_FETCH_UPDATES: Final = 1_024

_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
"""What such a statement did is told after the rows that it gives."""


class Shell:
    """Runs what is typed against a database; ``out`` gets what is to be shown."""

    def __init__(self, db: Database | RemoteDatabase, out: Callable[[str], None]) -> None:
        self.failed = False
        """Whether the last text had an error."""
        self.left = False
        """Whether the user wants to leave."""
        self._session = db.session()
        self._out = out
        self._rest = ""
        self._timing = False
        self._expanded = False

    @property
    def waiting(self) -> bool:
        """Whether a statement has begun that is not whole."""
        return bool(self._rest.strip())

    def feed(self, text: str) -> None:
        """Take in some lines."""
        self.failed = False
        lines = text.splitlines(keepends=True)
        while lines and not self.failed and not self.left:
            line = lines.pop(0)
            if line.lstrip().startswith("\\") and not self.waiting:
                self._command(line)
                continue
            self._rest += line
            if whole(self._rest):
                given, self._rest = self._rest, ""
                self._all(given)

    def finish(self) -> None:
        """Run what is left, with or without its semicolon."""
        given, self._rest = self._rest, ""
        if given.strip() and not self.left:
            self._all(given)

    def drop(self) -> None:
        """Forget the statement that has begun."""
        self._rest = ""

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def _all(self, text: str) -> None:
        for parsed in self._parsed(text):
            began = time.monotonic()
            try:
                self._run(parsed)
            except Error as error:
                self._fail(error, parsed.text)
            except KeyboardInterrupt:
                self._stopped()
            if self.failed:
                return
            if self._timing:
                self._out(f"Time: {(time.monotonic() - began) * 1_000:.1f} ms")

    def _parsed(self, text: str) -> tuple[Parsed, ...]:
        try:
            return parse_statements(text)
        except Error as error:
            self._fail(error, text)
            return ()

    def _fail(self, error: Error, text: str | None = None) -> None:
        self.failed = True
        position = getattr(error, "position", None)
        lines = [f"ERROR {error.code}: {error.message}"]
        if text is not None and position is not None:
            lines.append(excerpt(text, position))
        lines += [f"DETAIL: {error.detail}"] if error.detail else []
        lines += [f"HINT: {error.hint}"] if error.hint else []
        self._out("\n".join(lines))

    def _stopped(self) -> None:
        self.failed = True
        self._out("stopped")

    def _run(self, parsed: Parsed) -> None:
        match parsed.statement:
            case Subscribe():
                self._follow(parsed.text)
            case Copy():
                for line in self._session.copy(parsed.text):
                    self._out(line.rstrip("\n"))
            case _:
                self._show(self._session.execute(parsed.text))

    def _show(self, result: Result) -> None:
        if result.schema is None:
            self._out(result.tag)
        elif (text := document(result)) is not None:
            self._out(text)
        elif self._expanded:
            self._out(records(result.rows, result.schema))
        else:
            self._out(table(result.rows, result.schema))
        if result.schema is not None and result.tag.split()[0] in _WRITES:
            self._out(result.tag)

    def _follow(self, text: str) -> None:
        """Show changes until there are no more, or the user stops it."""
        with self._session.subscribe(text) as subscription:
            self._out("\t".join(subscription.columns))
            try:
                while not subscription.closed:
                    update: Any
                    for update in subscription.fetch(_FETCH_SECONDS, _FETCH_UPDATES):
                        row = cells(subscription.values(update), subscription.schema)
                        self._out("\t".join(row))
            except KeyboardInterrupt:
                self._out("stopped")

    def _command(self, line: str) -> None:
        try:
            self._meta(line)
        except Error as error:
            self._fail(error)
        except KeyboardInterrupt:
            self._stopped()

    def _meta(self, line: str) -> None:
        match command(line):
            case Ask(sql, parameters):
                self._show(self._session.execute(sql, parameters))
            case Do("quit"):
                self.left = True
            case Do("help"):
                self._out(HELP)
            case Do("timing"):
                self._timing = not self._timing
                self._out(f"Timing is {'on' if self._timing else 'off'}.")
            case Do("expanded"):
                self._expanded = not self._expanded
                self._out(f"Expanded display is {'on' if self._expanded else 'off'}.")
            case Do("include", name):
                self._include(Path(name))

    def _include(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            message = f'cannot read "{path}": {error.strerror}'
            raise InvalidValue(message, hint="write \\i and the path of a file") from None
        self._all(text)


def document(result: Result) -> str | None:
    """Return the one value of a result that is a text of several lines, such as a plan."""
    match result.rows:
        case [(str(text),)] if "\n" in text:
            return text
    return None


def whole(text: str) -> bool:
    r"""Return whether a text ends with the end of a statement.

    >>> whole("SELECT 1;"), whole("SELECT ';"), whole("SELECT 1; -- one\n"), whole("SELECT 1")
    (True, False, True, False)
    """
    try:
        tokens = tokenize(text)
    except (InvalidSyntax, TokenError):
        return False
    return not tokens or tokens[-1].token_type is TokenType.SEMICOLON


def excerpt(text: str, position: int) -> str:
    r"""Return the line of a position, from 1, and a mark below it.

    >>> print(excerpt("SELECT 1,\n  x FROM t", 13))
    LINE 2:   x FROM t
              ^
    """
    before = text[: position - 1]
    number = before.count("\n")
    line = text.split("\n")[number]
    head = f"LINE {number + 1}: "
    return f"{head}{line}\n{' ' * (len(head) + len(before.split(chr(10))[-1]))}^"

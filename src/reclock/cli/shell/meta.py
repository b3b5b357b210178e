r"""Commands of the shell that begin with a backslash, most of them questions to the catalog.

Each is a query over the system relations, so it answers at a timestamp like any other. Tests:
tests/cli/test_shell.py.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from reclock.errors import InvalidSyntax


class Ask(NamedTuple):
    """A statement to run, and its parameters."""

    sql: str
    parameters: tuple[str, ...] = ()


class Do(NamedTuple):
    """Something the shell does itself: its name, and a word."""

    action: str
    word: str = ""


_LIST: Final = "SELECT name, kind, timeline FROM reclock.objects"
_KINDS: Final = {
    "\\dt": "table",
    "\\dv": "view",
    "\\dm": "materialized view",
    "\\di": "index",
    "\\ds": "source",
    "\\dk": "sink",
}
_DOES: Final = {
    "\\q": "quit",
    "\\timing": "timing",
    "\\x": "expanded",
    "\\?": "help",
    "\\i": "include",
}

HELP: Final = """\
  \\d             all objects            \\d NAME       columns of an object
  \\dt \\dv \\dm    tables, views, materialized views
  \\di \\ds \\dk    indexes, sources, sinks
  \\sf NAME       the statement that made an object
  \\timing        how long statements take, on or off
  \\x             a line for each column, on or off
  \\i FILE        run the statements of a file
  \\q             leave (or Ctrl-D)
Statements end with a semicolon and may take several lines; Ctrl-C stops the one that runs.
SUBSCRIBE shows changes as they come until it is stopped."""


def command(line: str) -> Ask | Do:
    r"""Return what a line that begins with a backslash asks for.

    >>> command("\\d sales")
    Ask(sql='SHOW COLUMNS FROM sales', parameters=())
    >>> command("\\q")
    Do(action='quit', word='')
    """
    word, _, rest = line.strip().partition(" ")
    name = rest.strip().rstrip(";").strip()
    if word in _DOES:
        return Do(_DOES[word], name)
    if word == "\\d" and name:
        return Ask(f"SHOW COLUMNS FROM {name}")
    if word == "\\d":
        return Ask(f"{_LIST} WHERE kind <> 'system relation' ORDER BY name")
    if word == "\\sf" and name:
        return Ask("SELECT sql FROM reclock.objects WHERE name = $1", (name,))
    if word in _KINDS:
        return Ask(f"{_LIST} WHERE kind = $1 ORDER BY name", (_KINDS[word],))
    message = f"unknown command {word}"
    raise InvalidSyntax(message, hint="\\? lists the commands")

"""``reclock sql``: a shell; with ``-c`` or ``-f``, or from a pipe, it runs what is given and ends.

A state directory belongs to one process at a time. If ``reclock run`` or ``reclock serve`` has it,
the shell is its client (``server.signpost``); one that is starting, or stopping, is waited for
(``server.announcement``). Else the shell opens it.

Tests: tests/cli/test_sql.py.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

import click

from reclock.cli import options
from reclock.errors import StateInUse, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.cli.options import Where
    from reclock.server.client import RemoteDatabase
    from reclock.session.database import Database

_LOOK_SECONDS: Final = 0.1
_PATIENCE: Final = 0.5
"""So many seconds are waited without a word."""


@click.command()
@options.place
@click.option("-c", "--command", help="Run these statements, and end.")
@click.option(
    "-f",
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the statements of a file, and end.",
)
def sql(state: Path, command: str | None, file: Path | None, **place: Unpack[Where]) -> None:
    """Ask questions in SQL, at a prompt or from a script."""
    if sys.stderr.isatty():  # before all that takes time
        _tell(f"opening {state} …")
    import reclock  # noqa: PLC0415 - the other commands start faster
    from reclock.cli.shell.shell import Shell  # noqa: PLC0415

    served = awaited(state, _tell)
    with served or _opened(state, place) as db:
        shell = Shell(db, click.echo)
        try:
            if command is None and file is None and sys.stdin.isatty():
                from reclock.cli.shell.terminal import converse  # noqa: PLC0415

                by = "" if served is None else ", of the process that runs"
                click.echo(f"reclock {reclock.__version__}, state in {state}{by}; \\? for help")
                converse(db, shell)
                return
            given = command if command is not None else file.read_text("utf-8") if file else None
            shell.feed(sys.stdin.read() if given is None else given)
            if not shell.failed:
                shell.finish()
        finally:
            shell.close()
        if shell.failed:
            raise SystemExit(1)


def _opened(state: Path, place: Where) -> Database | RemoteDatabase:
    """Open a state directory, unless a process that serves it has come meanwhile."""
    import reclock  # noqa: PLC0415
    import reclock.session.database  # noqa: PLC0415 - takes so long that another may come

    if (served := awaited(state, _tell)) is not None:
        return served
    try:
        return reclock.open(state, **options.opened(place))
    except StateInUse as error:
        hint = "only reclock run and reclock serve let the shell in: end that process, or ask there"
        raise StateInUse(error.message, hint=hint) from error


def _tell(text: str) -> None:
    click.echo(text, err=True)


def awaited(state: Path, say: Callable[[str], None]) -> RemoteDatabase | None:
    """Return the database of a state directory that a process serves, or is going to serve.

    It returns None when there is no such process, and waits for one that has not come that far.
    """
    from reclock.server.announcement import announcer  # noqa: PLC0415

    began, said = time.monotonic(), False
    while True:
        owner = announcer(state)
        if (found := remote(state)) is not None or owner is None:
            return found
        if not said and time.monotonic() - began >= _PATIENCE:
            say(f"waiting for {owner}, which is starting or stopping with {state} …")
            said = True
        time.sleep(_LOOK_SECONDS)


def remote(state: Path) -> RemoteDatabase | None:
    """Return the database of a state directory that a process serves; None if none does."""
    from reclock.server.signpost import read_signpost  # noqa: PLC0415

    found = read_signpost(state)
    if found is None:
        return None
    from reclock.server.client import RemoteDatabase  # noqa: PLC0415

    try:
        return RemoteDatabase(found)
    except StorageError:
        return None  # it was killed: what it left behind says nothing

"""``reclock sql``: a shell; with ``-c`` or ``-f``, or from a pipe, it runs what is given and ends.

A state directory belongs to one process at a time. If one that listens has it (``reclock serve``,
``reclock run --listen``), the shell is its client (``server.signpost``); else it opens it.

Tests: tests/cli/test_sql.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reclock.cli import options
from reclock.errors import StorageError

if TYPE_CHECKING:
    from reclock.cli.options import Where
    from reclock.server.client import RemoteDatabase


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
    import reclock  # noqa: PLC0415 - the other commands start faster
    from reclock.cli.shell.shell import Shell  # noqa: PLC0415

    served = remote(state)
    with served or reclock.open(state, **options.opened(place)) as db:
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

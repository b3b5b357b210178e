"""``reclock sql``: a shell; with ``-c`` or ``-f``, or from a pipe, it runs what is given and ends.

A state directory belongs to one process at a time: a shell cannot look into one that
``reclock run`` is running.

Tests: tests/cli/test_sql.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reclock.cli import options


@click.command()
@options.state()
@options.master()
@click.option("-c", "--command", help="Run these statements, and end.")
@click.option(
    "-f",
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the statements of a file, and end.",
)
def sql(state: Path, master: str | None, command: str | None, file: Path | None) -> None:
    """Ask questions in SQL, at a prompt or from a script."""
    import reclock  # noqa: PLC0415 - the other commands start faster
    from reclock.cli.shell.shell import Shell  # noqa: PLC0415

    with reclock.open(state, master=master) as db:
        shell = Shell(db, click.echo)
        try:
            if command is None and file is None and sys.stdin.isatty():
                from reclock.cli.shell.terminal import converse  # noqa: PLC0415

                click.echo(f"reclock {reclock.__version__}, state in {state}; \\? for help")
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

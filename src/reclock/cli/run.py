"""``reclock run FILE``: apply a file of statements, and keep what it defines running.

Statements run one after the other. A CREATE whose object is there already, from the same
text, is left as it is: the same file can be run again after a stop. From another text it is
an error, and nothing after it is run.

Tests: tests/cli/test_run.py.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

if TYPE_CHECKING:
    from reclock.coordinator.database import Database
    from reclock.sql.parse import Parsed

_REFRESH_SECONDS: Final = 0.25


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reclock-state"),
    show_default=True,
    help="The state directory; it is made if there is none.",
)
@click.option("--master", help="Any Spark master; this machine by default.")
def run(file: Path, state: Path, master: str | None) -> None:
    """Apply the statements of FILE and keep them running until interrupted."""
    import reclock  # noqa: PLC0415 - the other commands start faster
    from reclock.cli.progress import PipelineProgress  # noqa: PLC0415
    from reclock.sql.parse import parse_statements  # noqa: PLC0415

    console = Console(stderr=True)
    statements = parse_statements(file.read_text(encoding="utf-8"))
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with reclock.open(state, master=master) as db:
        for parsed in statements:
            said = apply(db, parsed)
            console.print(f"{said}  {_first_line(parsed.text)}", highlight=False, soft_wrap=True)
        console.print(
            f"running, state in {state}; interrupt to stop", highlight=False, soft_wrap=True
        )
        with PipelineProgress(db, console) as progress:
            while not stopped.wait(_REFRESH_SECONDS):
                progress.update()
    console.print("stopped")


def apply(db: Database, parsed: Parsed) -> str:
    """Run a statement; return what was done, or that it had been done before."""
    name = getattr(parsed.statement, "name", None)
    made = type(parsed.statement).__name__
    if made.startswith("Create") and name is not None:
        text = db.execute("SELECT sql FROM reclock.objects WHERE name = $1", (name.parts[-1],)).rows
        if text and same(text[0][0], parsed.text):
            return f"{text_of(made)} (unchanged)"
    return db.execute(parsed.text).tag


def same(stored: str, given: str) -> bool:
    """Return whether an object was made by a text, whose secrets are not shown.

    >>> same("CREATE … (p = '***')", "CREATE … (p = 'secret')"), same("a", "b")
    (True, False)
    """
    parts = stored.split("'***'")
    place = 0
    for at, part in enumerate(parts):
        found = given.find(part, place)
        if found < 0 or (at == 0 and found > 0):
            return False
        place = found + len(part)
    return place == len(given)


def text_of(made: str) -> str:
    """Return the words of a statement's class.

    >>> text_of("CreateMaterializedView")
    'CREATE MATERIALIZED VIEW'
    """
    return "".join(f" {c}" if c.isupper() else c for c in made).strip().upper()


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0]
    return line if len(line) <= 70 else f"{line[:69]}…"

"""A statement that takes a while, for people who watch: a bar for the first load of a view.

A large first load runs in parts (``Database.loading``), and the bar says how many of them are
done; whatever else a statement does is a bar without an end. What is loaded then follows what
happened meanwhile (``Database.preparing``), and it says how far behind that is. On a terminal it
moves and goes when the statement is done; elsewhere a line is printed with each quarter of the
parts, and one when what follows takes more than a moment.

Tests: tests/cli/test_loading.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.cli.log import Log
    from reclock.session.database import Database

_LOOK_SECONDS: Final = 0.1
_STEPS: Final = 4
_LOADING: Final = "loading"
_MOMENT: Final = 10
"""So many looks at what follows are a moment."""


@contextmanager
def loading(db: Database, log: Log, title: str) -> Iterator[None]:
    """Show how far the statement in this block is."""
    over = threading.Event()
    show = _bar if log.console.is_terminal else _lines
    watcher = threading.Thread(target=show, args=(db, log, title, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _bar(db: Database, log: Log, title: str, over: threading.Event) -> None:
    columns = (SpinnerColumn(), TextColumn("{task.description} …"), BarColumn())
    parts = TextColumn("{task.fields[parts]}")  # nothing, as long as nobody knows how many
    with Progress(*columns, parts, console=log.console, transient=True) as progress:
        task = progress.add_task(title, total=None, parts="")
        while not over.wait(_LOOK_SECONDS):
            if (load := db.loading) is not None and load.total:
                parts_done = f"{load.done}/{load.total}"
                progress.update(task, completed=load.done, total=load.total, parts=parts_done)
            elif followed := _followed(db):
                progress.update(task, total=None, parts=followed)


def _followed(db: Database) -> str:
    """Return how far that is which follows; nothing if there is nothing such."""
    found = [one for one in db.preparing if one.phase != _LOADING]
    return ", ".join(f"{one.phase}, {one.behind} ms behind" for one in found)


def _lines(db: Database, log: Log, title: str, over: threading.Event) -> None:
    said = looks = 0
    while not over.wait(_LOOK_SECONDS):
        if followed := _followed(db):
            looks += 1
            if looks == _MOMENT:
                log.say("following", followed, statement=title, progress=followed)
        if (load := db.loading) is None or not load.total:
            continue
        step = _STEPS * load.done // load.total
        if step > said:
            said = step
            log.say("loading", "", statement=title, done=load.done, total=load.total)

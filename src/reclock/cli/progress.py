"""How sources load, for people who watch: a bar per source, with rate and time to go.

On a terminal the bars move; elsewhere a line is printed when the state of a source changes.
What is shown is ``reclock.source_status``.

Tests: tests/cli/test_run.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from rich.console import Console

    from reclock.coordinator.database import Database

_QUERY: Final = (
    "SELECT source, state, rows, errors, upstream, bound, lag_ms, detail "
    "FROM reclock.source_status ORDER BY source"
)


class SourceProgress:
    """The bars of all sources; ``update`` looks again."""

    def __init__(self, db: Database, console: Console) -> None:
        self._db = db
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._states: dict[str, str] = {}
        self._progress = Progress(
            TextColumn("{task.fields[state]:>8} {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
        )

    def __enter__(self) -> SourceProgress:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self) -> None:
        """Show how every source is doing now."""
        for source, state, rows, errors, upstream, bound, lag_ms, detail in self._db.execute(
            _QUERY
        ).rows:
            note = "" if lag_ms is None else f"lag {lag_ms / 1_000:.1f} s"
            if errors:
                note += f", {errors} errors"
            if detail:
                note += f", {detail}"
            if not self._console.is_terminal:
                self._line(source, state, rows, note)
                continue
            if source not in self._tasks:
                self._tasks[source] = self._progress.add_task(source, state="", note="", rate="")
            task = self._tasks[source]
            self._progress.update(
                task, total=upstream, completed=bound or 0, state=state, note=note.lstrip(", ")
            )
            speed = self._progress.tasks[task].speed
            self._progress.update(task, rate=f"{speed:,.0f}/s" if speed else "")

    def _line(self, source: str, state: str, rows: int, note: str) -> None:
        if self._states.get(source) != state:
            self._states[source] = state
            line = f"{source}: {state}, {rows} records read, {note}".rstrip(", ")
            self._console.print(line, highlight=False, soft_wrap=True)

"""Progress of loading sources and writing sinks: a bar each, with rate and remaining time.

On a terminal the bars move; elsewhere a line is printed when the state of one changes. What is
shown is ``reclock.source_status`` and ``reclock.sink_status``; a line with the first tick
(``reclock.ticks``), and one when ticks begin to fail, or to fail of something else
(``reclock.errors``).

Tests: tests/cli/test_run.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from reclock.cli.watch import codes_of
from reclock.rows.moment import with_moment

if TYPE_CHECKING:
    from reclock.cli.log import Log
    from reclock.session.database import Database

_SOURCES: Final = (
    "SELECT source, state, rows, errors, upstream, bound, lag_ms, detail "
    "FROM reclock.source_status ORDER BY source"
)
MOMENT_MS: Final = 10_000
"""A source that ran and is so little behind still runs: something always comes."""
_TICKS: Final = "SELECT timestamp, phase, millis, rows FROM reclock.ticks"
_ERRORS: Final = "SELECT object, code, message, detail FROM reclock.errors"
_SINKS: Final = (
    "SELECT sink, state, messages, lag_ms, detail FROM reclock.sink_status ORDER BY sink"
)


class PipelineProgress:
    """The bars of all sources and sinks; ``update`` looks again."""

    def __init__(self, db: Database, log: Log) -> None:
        self._db = db
        self._log = log
        self._console = log.console
        self._tasks: dict[str, TaskID] = {}
        self._states: dict[str, str] = {}
        self._failing: set[tuple[str, str]] = set()
        self._ticked = False
        self._progress = Progress(
            TextColumn("{task.fields[state]:>8} {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=log.console,
        )

    def __enter__(self) -> PipelineProgress:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self) -> None:
        """Show how everything is doing now."""
        self._ticks()
        for source, now, rows, errors, upstream, bound, lag_ms, detail in self._db.execute(
            _SOURCES
        ).rows:
            ran = now == "loading" and self._states.get(source) == "running"
            state = _still(lag_ms) if ran else now  # what came since the last tick is no news
            first = None if self._ticked else "waiting for the first tick"
            note = _note(lag_ms, f"{errors} errors" if errors else None, detail or first)
            if self._console.is_terminal:
                self._bar(source, state, note, bound or 0, upstream)
            else:
                self._line(
                    "source",
                    source,
                    state,
                    records=rows,
                    lag_ms=lag_ms,
                    errors=errors or None,
                    detail=detail,
                )
        for sink, state, messages, lag_ms, detail in self._db.execute(_SINKS).rows:
            note = _note(lag_ms, detail)
            if self._console.is_terminal:
                self._bar(sink, state, note, messages, None)
            else:
                self._line("sink", sink, state, messages=messages, lag_ms=lag_ms, detail=detail)

    def _ticks(self) -> None:
        if not self._ticked:
            self._first_tick()
        errors = self._db.execute(_ERRORS).rows
        rows = [row for object_, *row in errors if object_ is None]  # those of the loop
        for code, message, detail in rows:
            if (code, message) not in self._failing:
                words = f"ticks fail: {message} ({detail})"
                self._log.say(
                    "tick",
                    words,
                    level="error",
                    state="failing",
                    code=code,
                    error=message,
                    detail=detail,
                )
        if self._failing and not rows:
            self._log.say("tick", "ticks go on", state="running")
        self._failing = {(code, message) for code, message, _ in rows}

    def _first_tick(self) -> None:
        for timestamp, phase, millis, rows in self._db.execute(_TICKS).rows:
            if phase == "total":
                facts = {"timestamp": timestamp, "millis": round(millis), "rows": rows}
                self._log.say(
                    "tick", f"ticking, first at {with_moment(timestamp)}", state="running", **facts
                )
                self._ticked = True
                return

    def _bar(self, name: str, state: str, note: str, done: int, total: int | None) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, state="", note="", rate="")
        task = self._tasks[name]
        self._progress.update(task, total=total, completed=done, state=state, note=note)
        speed = self._progress.tasks[task].speed
        self._progress.update(task, rate=f"{speed:,.0f}/s" if speed else "")

    def _line(self, kind: str, name: str, state: str, **facts: object) -> None:
        if self._states.get(name) != state:
            self._states[name] = state
            level = {"stalled": "warning", "failed": "error"}.get(state, "info")
            code = None if level == "info" else codes_of(self._db).get((kind, name))
            told: dict[str, Any] = {"name": name, "state": state, "code": code, **facts}
            self._log.say(kind, f"{kind} {name}: {state}", level=level, **told)


def _still(lag_ms: int | None) -> str:
    """Return the state of a source that ran, and is behind again.

    >>> _still(900), _still(60_000), _still(None)
    ('running', 'loading', 'loading')
    """
    return "running" if lag_ms is not None and lag_ms <= MOMENT_MS else "loading"


def _note(lag_ms: int | None, *more: str | None) -> str:
    lag = None if lag_ms is None else f"lag {lag_ms / 1_000:.1f} s"
    return ", ".join(text for text in (lag, *more) if text)

"""``reclock run FILE``: make what a file of statements says, and keep it running.

The file is compared with what is there (``reclock.session.pipeline``) before anything is done:
what is missing is created, what is there from the same text stays, anything else is a conflict
that is shown, and nothing is applied. ``--listen`` opens the port of ``reclock serve`` too, so that
one can look at what runs; without it ``reclock sql`` can, through a Unix socket in the state
directory. ``--dry-run`` stops after planning every statement.

The command ends when it is interrupted (SIGINT, SIGTERM: status 0), when a statement fails, or when
nothing could be right any more (status 1, with the reason): the state is broken, or another process
took it over. A statement that is interrupted has not happened; what was durable before stays, and
so does what a process leaves that is killed.

Tests: tests/cli/test_run.py.
"""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

import click

from reclock.cli import options
from reclock.errors import InvalidValue
from reclock.server.announcement import announced

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from reclock.cli.log import Log
    from reclock.cli.options import Elsewhere, Where
    from reclock.session.database import Database

_REFRESH_SECONDS: Final = 0.25


@click.command(short_help="Apply a file of statements and keep it running.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.place
@options.console
@options.logging
@click.option("--dry-run", is_flag=True, help="Plan every statement, run none, and end.")
def run(
    file: Path,
    state: Path,
    *,
    dry_run: bool,
    http: str | None,
    listen: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    trust_local: bool,
    log_format: str,
    log_level: str,
    **place: Unpack[Where],
) -> None:
    """Apply the statements of FILE and keep them running until interrupted."""
    if not dry_run:  # before all else: a shell that starts now shall wait
        click.get_current_context().with_resource(announced(state))
    from rich.console import Console  # noqa: PLC0415 - the other commands start faster

    import reclock  # noqa: PLC0415
    from reclock.cli.http import Listening, listening  # noqa: PLC0415
    from reclock.cli.log import Log  # noqa: PLC0415
    from reclock.cli.tls import tls_context  # noqa: PLC0415

    text = file.read_text(encoding="utf-8")
    log = Log(Console(stderr=True), reclock.SystemClock(), log_format, log_level)
    log.adopt()
    tls = tls_context(tls_cert, tls_key)
    wanted = Listening.of(http, tls=tls, trusts_local=trust_local)
    port = None if listen is None else options.place_of(listen, "listen", options.PG_PORT)
    if dry_run:
        _rehearse(text, state, log, store=place["store"], meta=place["meta"])
        return
    stopped = threading.Event()
    try:
        _on_signals(_interrupt)
        log.say("opening", f"opening {state} …", state=state)
        with log.ending(), reclock.open(state, **options.opened(place)) as db:
            apply(db, text, log)
            _on_signals(lambda *_: stopped.set())  # again: Spark, once started, has its own
            words = f"running, state in {state}; interrupt to stop"
            log.say("running", words, state=state)
            with listening(db, wanted, log), served(db, state, port, tls, log, trusts=trust_local):
                keep(db, log, stopped)
    except KeyboardInterrupt:
        pass  # what ran has not happened
    log.say("stopped", "stopped")


@contextmanager
def served(
    db: Database,
    state: Path,
    port: tuple[str, int] | None,
    tls: ssl.SSLContext | None,
    log: Log,
    *,
    trusts: bool,
) -> Iterator[None]:
    """Serve PostgreSQL's protocol until the block ends: there, or to the shell alone."""
    from reclock.server.background import serving  # noqa: PLC0415
    from reclock.server.server import Options  # noqa: PLC0415
    from reclock.server.signpost import new_key, private_socket, signpost  # noqa: PLC0415

    key = new_key()
    if port is None:
        path = private_socket(state)
        with ExitStack() as stack:
            try:
                stack.enter_context(serving(db, Options(path, 0, key=key)))
                stack.enter_context(signpost(state, path, 0, key))
            except InvalidValue as error:  # no file system, or no path, for sockets
                words = f"reclock sql cannot connect: {error.detail}; --listen opens a port"
                log.say("unreachable", words, level="warning", error=error.detail)
            yield
        return
    given = Options(*port, tls, trusts, key=key)
    with serving(db, given, log.say) as server, signpost(state, port[0], server.port, key):
        words = f"listening at {port[0]}:{server.port}"
        log.say("listening", words, host=port[0], port=server.port)
        yield


def apply(db: Database, text: str, log: Log) -> None:
    """Create what is missing of a file."""
    from reclock.cli.loading import loading  # noqa: PLC0415
    from reclock.session.pipeline.plan import Action  # noqa: PLC0415

    for step in db.plan(text):
        if step.action in (Action.CREATE, Action.RUN):
            with loading(db, log, step.title):  # a first load may take a while
                done = db.execute(step.parsed.text).tag
        else:
            done = step.action.value
        log.say("statement", f"{done}  {step.title}", done=done, statement=step.title)


def keep(db: Database, log: Log, stopped: threading.Event) -> None:
    """Show progress until interrupted, or until nothing can go on."""
    from reclock.cli.progress import PipelineProgress  # noqa: PLC0415

    with PipelineProgress(db, log) as progress:
        while not stopped.wait(_REFRESH_SECONDS):
            if (failure := db.failure) is not None:
                raise failure
            progress.update()


def _on_signals(handler: Callable[..., object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _rehearse(text: str, state: Path, log: Log, **elsewhere: Unpack[Elsewhere]) -> None:
    from reclock.connectors.kafka.client import KafkaCluster  # noqa: PLC0415
    from reclock.session.offline import look  # noqa: PLC0415

    with look(state, KafkaCluster, **elsewhere) as db:
        steps = db.plan(text)
        db.rehearse(steps)
    for step in steps:
        done = step.action.value
        log.say("planned", f"{done}  {step.title}", done=done, statement=step.title)

"""``reclock serve``: the database for everything that speaks PostgreSQL's protocol.

Clients log in as roles of the catalog, by password; ``--trust-local`` lets those on this machine
in without. ``--init FILE`` makes what a file of statements says first, as ``reclock run`` does.

What fails in the background, sources, sinks, ticks and views, is said on standard error
(``watch``).

The command ends when it is interrupted (status 0): statements under way may finish, clients are
told; or when nothing could be right any more (status 1, with the reason).

Tests: tests/cli/test_serve.py.
"""

from __future__ import annotations

import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

import click

from reclock.cli import options
from reclock.cli.tls import tls_context
from reclock.server.announcement import announced

if TYPE_CHECKING:
    from reclock.cli.http import Listening
    from reclock.cli.log import Log
    from reclock.cli.options import Where
    from reclock.server.server import Options
    from reclock.session.database import Database

_LOOK_SECONDS: Final = 1.0


@click.command(short_help="Serve SQL to psql, drivers and tools.")
@options.place
@options.serving
@options.logging
def serve(
    *,
    state: Path,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    max_connections: int,
    file_root: tuple[Path, ...],
    init: Path | None,
    trust_local: bool,
    http: str | None,
    log_format: str,
    log_level: str,
    **place: Unpack[Where],
) -> None:
    """Serve the database to everything that speaks PostgreSQL's protocol."""
    click.get_current_context().with_resource(announced(state))
    import asyncio  # noqa: PLC0415 - the other commands start faster

    from rich.console import Console  # noqa: PLC0415

    import reclock  # noqa: PLC0415
    from reclock.cli.http import DEFAULT, Listening  # noqa: PLC0415
    from reclock.cli.log import Log  # noqa: PLC0415
    from reclock.cli.run import apply  # noqa: PLC0415
    from reclock.server.server import Options  # noqa: PLC0415
    from reclock.server.signpost import new_key  # noqa: PLC0415
    from reclock.session.file_roots import FileRoots  # noqa: PLC0415

    private = [state, *(Path(s) for s in [place["store"]] if s is not None and "://" not in s)]
    files = FileRoots.of(file_root, private=private)
    tls = tls_context(tls_cert, tls_key)
    given = Options(host, port, tls, trust_local, max_connections, files=files, key=new_key())
    text = None if init is None else init.read_text(encoding="utf-8")
    log = Log(Console(stderr=True), reclock.SystemClock(), log_format, log_level)
    log.adopt()
    wanted = Listening.of(
        http or DEFAULT, tls=tls, trusts_local=trust_local, files=files, must=http is not None
    )
    log.say("opening", f"opening {state} …", state=state)
    with log.ending(), reclock.open(state, **options.opened(place)) as db:
        if text is not None:
            apply(db, text, log)
        if not trust_local and not any(role.login for role in db.roles.given.values()):
            words = "no role can log in yet: CREATE USER … PASSWORD '…' first, or use --trust-local"
            log.say("no_users", words, level="warning")
        asyncio.run(_serve(db, state, given, wanted, log))
    log.say("stopped", "stopped")


async def _serve(db: Database, state: Path, given: Options, wanted: Listening, log: Log) -> None:
    import asyncio  # noqa: PLC0415

    from reclock.cli.http import listening  # noqa: PLC0415
    from reclock.cli.watch import Watch  # noqa: PLC0415
    from reclock.server.server import Server  # noqa: PLC0415
    from reclock.server.signpost import signpost  # noqa: PLC0415

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    server = Server(db, given, log.say)
    await server.start()
    words = f"listening at {given.host}:{server.port}; interrupt to stop"
    log.say("listening", words, host=given.host, port=server.port)
    watch = Watch(db, log)
    web = ExitStack()
    assert given.key is not None
    web.enter_context(signpost(state, given.host, server.port, given.key))
    try:
        counted = replace(wanted, connections=lambda: server.sessions)
        await asyncio.to_thread(web.enter_context, listening(db, counted, log))
        while not stopped.is_set():
            if (failure := db.failure) is not None:
                raise failure
            await asyncio.to_thread(watch.look)
            try:
                await asyncio.wait_for(stopped.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue
    finally:
        await asyncio.to_thread(web.close)
        await server.close()

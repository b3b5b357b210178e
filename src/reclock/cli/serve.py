"""``reclock serve``: the database for everything that speaks PostgreSQL's protocol.

Clients log in as roles of the catalog, by password; ``--trust-local`` lets those on this machine
in without. ``--init FILE`` makes what a file of statements says first, as ``reclock run`` does.

The command ends when it is interrupted (status 0): statements under way may finish, clients are
told; or when nothing could be right any more (status 1, with the reason).

Tests: tests/cli/test_serve.py.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

import click

from reclock.cli import options
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    import ssl

    from reclock.cli.log import Log
    from reclock.cli.options import Where
    from reclock.coordinator.database import Database
    from reclock.server.server import Options

_LOOK_SECONDS: Final = 0.5
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@options.place
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", default=6875, show_default=True, type=click.IntRange(0, 65_535),
    help="The port to listen at; 0 is any that is free.",
)  # fmt: skip
@click.option("--tls-cert", type=_FILE, help="A certificate chain (PEM), to offer TLS.")
@click.option("--tls-key", type=_FILE, help="The certificate's private key (PEM).")
@click.option(
    "--trust-local", is_flag=True, help="Let clients on this machine in without a password."
)
@click.option(
    "--max-connections", default=100, show_default=True, type=click.IntRange(1, 10_000),
    help="How many clients there may be at once.",
)  # fmt: skip
@click.option("--init", type=_FILE, help="Apply the statements of a file first, as run does.")
def serve(
    *,
    state: Path,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    max_connections: int,
    init: Path | None,
    trust_local: bool,
    **place: Unpack[Where],
) -> None:
    """Serve the database to everything that speaks PostgreSQL's protocol."""
    import asyncio  # noqa: PLC0415 - the other commands start faster

    from rich.console import Console  # noqa: PLC0415

    import reclock  # noqa: PLC0415
    from reclock.cli.log import Log  # noqa: PLC0415
    from reclock.cli.run import apply  # noqa: PLC0415
    from reclock.server.server import Options  # noqa: PLC0415

    given = Options(host, port, tls_context(tls_cert, tls_key), trust_local, max_connections)
    text = None if init is None else init.read_text(encoding="utf-8")
    log = Log(Console(stderr=True), reclock.SystemClock())
    with reclock.open(state, **place) as db:
        if text is not None:
            apply(db, text, log)
        if not trust_local and not any(role.login for role in db.roles.given.values()):
            words = "nobody can log in yet: CREATE USER … PASSWORD '…' first, or use --trust-local"
            log.say("no_users", words)
        asyncio.run(_serve(db, given, log))
    log.say("stopped", "stopped")


async def _serve(db: Database, given: Options, log: Log) -> None:
    import asyncio  # noqa: PLC0415

    from reclock.server.server import Server  # noqa: PLC0415

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    server = Server(db, given, log.say)
    await server.start()
    words = f"listening at {given.host}:{server.port}; interrupt to stop"
    log.say("listening", words, host=given.host, port=server.port)
    try:
        while not stopped.is_set():
            if (failure := db.failure) is not None:
                raise failure
            try:
                await asyncio.wait_for(stopped.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue
    finally:
        await server.close()


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return how to speak TLS with a certificate; None without one."""
    import ssl  # noqa: PLC0415

    if certificate is None:
        if key is not None:
            message = "--tls-key is of no use without --tls-cert"
            raise InvalidValue(message, hint="give both, or none")
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as cause:
        message = f"cannot read the certificate {certificate}"
        hint = "give a PEM file with --tls-cert, and its private key with --tls-key"
        raise InvalidValue(message, detail=str(cause), hint=hint) from cause
    return made

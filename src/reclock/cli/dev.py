"""``reclock dev``: servers for development.

Tests: tests/cli/test_main.py, and with a broker tests/dev/test_kafka.py.
"""

from __future__ import annotations

from pathlib import Path

import click

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the broker keeps everything; the user's cache by default.",
)


@click.group()
def dev() -> None:
    """Run servers for development."""


@dev.group()
def kafka() -> None:
    """Run a real Apache Kafka on this machine, for this machine."""


@kafka.command()
@_directory
@click.option("--port", type=click.IntRange(0, 65535), help="9092 by default; 0 is any free one.")
def start(directory: Path | None, port: int | None) -> None:
    """Start the broker and print its address, fetching it (43 MB) the first time."""
    from rich.console import Console  # noqa: PLC0415 - the other commands start faster

    from reclock.dev.kafka import Broker  # noqa: PLC0415

    console = Console(stderr=True)
    with console.status("starting Apache Kafka") as status:
        running = Broker(directory).start(port, status.update)
    console.print(f"Apache Kafka runs as process {running.pid}, data in {running.directory}")
    click.echo(running.address)


@kafka.command()
@_directory
def stop(directory: Path | None) -> None:
    """Stop the broker; its topics stay."""
    from reclock.dev.kafka import Broker  # noqa: PLC0415 - the other commands start faster

    stopped = Broker(directory).stop()
    click.echo("not running" if stopped is None else f"stopped {stopped.address}")


@kafka.command()
@_directory
def status(directory: Path | None) -> None:
    """Say whether the broker runs: process, address, directory."""
    from reclock.dev.kafka import Broker  # noqa: PLC0415 - the other commands start faster

    running = Broker(directory).status()
    if running is None:
        click.echo("not running")
        raise SystemExit(1)
    click.echo(f"process {running.pid}, data in {running.directory}")
    click.echo(running.address)

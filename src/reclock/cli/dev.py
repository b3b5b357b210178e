"""``reclock dev``: servers for development.

``topic``, ``produce`` and ``consume`` are for trying things out: against the broker that ``start``
started, unless another is named.

Tests: tests/cli/test_main.py, and with a broker tests/dev/test_kafka.py, test_topics.py.
"""

from __future__ import annotations

import sys
from contextlib import closing
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


_broker = click.option(
    "--broker", help="host:port; the one that start started, else localhost:9092."
)
_separator = click.option(
    "--separator", help="The text between key and value in a line; without it there are no keys."
)


@kafka.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1, 1_000), default=1, show_default=True)
@_broker
@_directory
def topic(name: str, partitions: int, broker: str | None, directory: Path | None) -> None:
    """Make the topic NAME; one that is there stays as it is."""
    from reclock.dev.topics import create_topic  # noqa: PLC0415 - the other commands start faster

    is_new = create_topic(_address(broker, directory), name, partitions)
    click.echo(f"{'created' if is_new else 'already there'}: {name}")


@kafka.command()
@click.argument("name")
@_separator
@_broker
@_directory
def produce(name: str, separator: str | None, broker: str | None, directory: Path | None) -> None:
    """Write the lines of standard input into the topic NAME, one record each."""
    from reclock.dev.topics import parse_line  # noqa: PLC0415 - the other commands start faster
    from reclock.dev.topics import produce as write  # noqa: PLC0415

    lines = (line for line in sys.stdin if line.strip())
    records = (parse_line(line, separator) for line in lines)
    count = write(_address(broker, directory), name, records)
    click.echo(f"{count} record{'' if count == 1 else 's'} written to {name}", err=True)


@kafka.command()
@click.argument("name")
@click.option("--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@_separator
@_broker
@_directory
def consume(
    name: str, separator: str | None, broker: str | None, directory: Path | None, *, follow: bool
) -> None:
    """Print the committed records of the topic NAME, a line each."""
    from reclock.dev.topics import consume as read  # noqa: PLC0415 - the other commands start faster

    with closing(read(_address(broker, directory), name, follow=follow)) as records:
        for record in records:
            value = b"" if record.value is None else record.value
            key = b"" if separator is None else (record.key or b"") + separator.encode()
            click.echo(key + value)


def _address(broker: str | None, directory: Path | None) -> str:
    """Return the broker to talk to."""
    if broker is not None:
        return broker
    from reclock.dev.kafka import DEFAULT_PORT, Broker  # noqa: PLC0415

    running = Broker(directory).status()
    return f"localhost:{DEFAULT_PORT}" if running is None else running.address

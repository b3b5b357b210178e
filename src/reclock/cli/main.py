"""``reclock``: the command and what is common to all its parts.

What a command prints for programs goes to standard output, everything else to standard
error. An error of reclock is printed with its detail and hint, and ends with status 1.

Tests: tests/cli/test_main.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reclock import __version__
from reclock.cli.demo import demo
from reclock.cli.dev import dev
from reclock.cli.doctor import doctor
from reclock.cli.init import init
from reclock.cli.inspect import inspect
from reclock.cli.options import CONFIG_FILE, defaults
from reclock.cli.pack import pack
from reclock.cli.run import run
from reclock.cli.serve import serve
from reclock.cli.sql import sql
from reclock.errors import Error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reclock")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="RECLOCK_CONFIG",
    help=f"A TOML file with settings; {CONFIG_FILE}, if it is there.",
)
@click.pass_context
def cli(context: click.Context, config: Path | None) -> None:
    """Strictly consistent streaming SQL on Apache Spark."""
    given = defaults(config)
    context.default_map = dict.fromkeys(cli.commands, given)


for command in (demo, dev, doctor, init, inspect, pack, run, serve, sql):
    cli.add_command(command)


def main() -> None:
    """Run the command line; the entry point of ``reclock`` and ``python -m reclock``."""
    try:
        cli(prog_name="reclock")
    except Error as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)

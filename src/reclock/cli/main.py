"""``reclock``: the command and what is common to all its parts.

What a command prints for programs goes to standard output, everything else to standard
error. An error of reclock is printed with its detail and hint, and ends with status 1.

Tests: tests/cli/test_main.py.
"""

from __future__ import annotations

import sys

import click

from reclock import __version__
from reclock.cli.demo import demo
from reclock.cli.dev import dev
from reclock.cli.doctor import doctor
from reclock.cli.init import init
from reclock.cli.inspect import inspect
from reclock.cli.run import run
from reclock.cli.sql import sql
from reclock.errors import Error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reclock")
def cli() -> None:
    """Strictly consistent streaming SQL on Apache Spark."""


for command in (demo, dev, doctor, init, inspect, run, sql):
    cli.add_command(command)


def main() -> None:
    """Run the command line; the entry point of ``reclock`` and ``python -m reclock``."""
    try:
        cli(prog_name="reclock")
    except Error as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)

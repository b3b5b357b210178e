"""``reclock demo``: see what reclock does, in three minutes.

Tests: tests/demo/test_demo.py.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

import click


@click.command(short_help="A bank on a real Kafka, killed again and again, then verified.")
@click.option("--no-kafka", is_flag=True, help="Without a Kafka: the bank makes its own transfers.")
@click.option("--kills", type=click.IntRange(0, 50), default=3, show_default=True,
              help="How often the engine is killed.")  # fmt: skip
def demo(*, no_kafka: bool, kills: int) -> None:
    """Run a bank on a real Kafka, kill -9 its engine again and again, and verify every number.

    Everything happens in a temporary directory, on loopback; nothing is left.
    """
    from rich.console import Console  # noqa: PLC0415 - the other commands start faster

    from reclock.demo.embedded import EmbeddedStory  # noqa: PLC0415
    from reclock.demo.screen import Screen  # noqa: PLC0415
    from reclock.demo.story import Story  # noqa: PLC0415

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    told = EmbeddedStory if no_kafka else Story
    with tempfile.TemporaryDirectory(prefix="reclock-demo-") as home:
        with Screen(Console()) as screen:
            verdict = told(Path(home), screen, kills).run()
        click.echo(str(verdict))
    if not verdict.right:
        raise SystemExit(1)

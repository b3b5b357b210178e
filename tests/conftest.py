from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from .shards import SECONDS, Shard, turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.dataflow.session import Spark
    from reclock.testing.kafka import RealKafka

SHARD = pytest.StashKey[Shard]()

# A busy machine is slow, not wrong: no deadline for a single example.
settings.register_profile(
    "reclock", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("reclock")

# What opening a database does (``sql.depth.CALLS``): hypothesis minds if it happens within a test.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))

# Tests start Spark more than they use it: let Java compile fast, not well. For the processes
# that they start, too, which have one archive of classes then.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# What is loaded to collect the tests stays: no need to look for garbage in it, now or later.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shard", metavar="N/ALL", help="of the slow tests, those of one shard; or: next"
    )


def pytest_configure(config: pytest.Config) -> None:
    text = config.getoption("--shard")
    if text is not None:
        try:
            config.stash[SHARD] = Shard.of(text, turn(config.rootpath))
        except ValueError as error:
            raise pytest.UsageError(error.args[0]) from None


def pytest_sessionstart(session: pytest.Session) -> None:
    _say(session.config)


def pytest_terminal_summary(config: pytest.Config) -> None:
    _say(config)


def _say(config: pytest.Config) -> None:
    """Say which shard runs: first and last, for runs that do not end and for those that fail."""
    shard, terminal = (
        config.stash.get(SHARD, None),
        config.pluginmanager.get_plugin("terminalreporter"),
    )
    if shard is not None and terminal is not None:
        terminal.ensure_newline()
        terminal.write_line(f"slow tests, shard {shard}; again: make test-slow SHARD={shard}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the slow tests of the shard, and all that are not slow."""
    shard = config.stash.get(SHARD, None)
    if shard is None:
        return
    marked = ((item, item.get_closest_marker("slow")) for item in items)
    seconds = {
        item.nodeid: float(mark.kwargs.get("seconds", SECONDS)) for item, mark in marked if mark
    }
    others = seconds.keys() - shard.tests(seconds)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in others])
    items[:] = [item for item in items if item.nodeid not in others]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def spark() -> Iterator[Spark]:
    """The process's Spark, started by the first test that uses it, stopped after the last."""
    from reclock.dataflow.session import Spark  # noqa: PLC0415 - most tests do without

    handle = Spark()
    _ = handle.session
    yield handle
    handle.close()


@pytest.fixture(autouse=True)
def _spark_stays(request: pytest.FixtureRequest) -> None:
    """Databases come and go: Spark would be stopped with each and started for the next."""
    if request.node.get_closest_marker("spark") is not None:
        request.getfixturevalue("spark")


@pytest.fixture(scope="session")
def kafka() -> Iterator[RealKafka]:
    """One broker for all tests, started by the first that uses it; topics are each test's own."""
    from reclock.testing.kafka import running_kafka  # noqa: PLC0415 - most tests do without

    with running_kafka() as broker:
        yield broker

from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from forced import EXECUTIONS, forced

from .leaks import SPARK_VARIABLES, VARIABLES, SessionFixtures, Surroundings, Threads
from .shards import SECONDS, Shard, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from reclock.spark.session import Spark
    from reclock.testing.kafka import RealKafka

SHARD = pytest.StashKey[Shard]()
SAID = pytest.StashKey[list[str]]()
SLOW = pytest.StashKey[dict[str, float]]()

# A busy machine is slow, not wrong: no deadline for a single example.
settings.register_profile(
    "reclock", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("reclock")
settings.register_profile("few", settings.get_profile("reclock"), max_examples=15)

# What opening a database does (``sql.depth.CALLS``): hypothesis minds if it happens within a test.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))

# Tests start Spark more than they use it: let Java compile fast, not well. For the processes
# that they start, too, which have one archive of classes then.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# What tests start, tasks of Spark among it, may import what they do.
_SUPPORT = str(Path(__file__).parent / "support")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), _SUPPORT]))

# What is loaded to collect the tests stays: no need to look for garbage in it, now or later.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shard", metavar="N/ALL", help="of the slow tests, those of one shard; or: next"
    )
    parser.addoption(
        "--variants", metavar="N", type=int, help="of a test with parameters, N, evenly spread"
    )
    parser.addoption(
        "--execution", choices=EXECUTIONS, help="have all work run as jobs, see support/forced.py"
    )
    parser.addoption("--master", help="the Spark master of databases that name none")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SessionFixtures())
    text = config.getoption("--shard")
    turn = Turn.at(config.rootpath)
    config.stash[SAID] = [] if turn.said is None else [turn.said]
    if text is not None:
        try:
            config.stash[SHARD] = shard = Shard.of(text, turn.number)
        except ValueError as error:
            raise pytest.UsageError(error.args[0]) from None
        config.stash[SAID].append(f"slow tests, shard {shard}; again: make test-slow SHARD={shard}")


def pytest_sessionstart(session: pytest.Session) -> None:
    _say(session.config)


def pytest_terminal_summary(config: pytest.Config) -> None:
    _say(config)


def _say(config: pytest.Config) -> None:
    """Say what is drawn: first and last, for runs that do not end and for those that fail."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        for line in config.stash[SAID]:
            terminal.ensure_newline()
            terminal.write_line(line)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Note how long slow tests take, of all that are collected; choose after all others have."""
    marked = ((item, item.get_closest_marker("slow")) for item in items)
    config.stash[SLOW] = {
        item.nodeid: float(mark.kwargs.get("seconds", SECONDS)) for item, mark in marked if mark
    }
    yield
    _choose(config, items)


def _choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``--variants``, ``--shard`` and ``--execution`` do not ask for."""
    if config.getoption("--execution") is not None:
        _leave_out(config, items, {i.nodeid for i in items if i.get_closest_marker("placed")})
    most, shard = config.getoption("--variants"), config.stash.get(SHARD, None)
    if most is not None:
        variants = defaultdict[str, list[str]](list)
        for item in items:
            variants[item.nodeid.partition("[")[0]].append(item.nodeid)
        chosen = {name for names in variants.values() for name in spread(names, most)}
        _leave_out(config, items, {item.nodeid for item in items} - chosen)
    if shard is not None:
        seconds = config.stash[SLOW]
        _leave_out(config, items, seconds.keys() - shard.tests(seconds))


def spread(names: list[str], most: int) -> list[str]:
    """Return the first of some variants, and others up to ``most``, as far apart as can be."""
    count = min(most, len(names))
    return [names[at * len(names) // count] for at in range(count)]


def _leave_out(config: pytest.Config, items: list[pytest.Item], names: Set[str]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in names])
    items[:] = [item for item in items if item.nodeid not in names]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _threads() -> Iterator[Threads]:
    """All threads end with the file that started them."""
    threads = Threads()
    yield threads
    if left := threads.left():
        pytest.fail("\n".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def _surroundings(_threads: Threads, request: pytest.FixtureRequest) -> Iterator[None]:
    """The environment and the directory are those of before, after every test."""
    before = Surroundings()
    yield
    _threads.note(request.node.nodeid)
    by_spark = "spark" in (*request.keywords, request.config.getoption("--execution"))
    allowed = {**VARIABLES, **(SPARK_VARIABLES if by_spark else {})}
    if changes := before.changes(allowed):
        pytest.fail("\n".join(changes), pytrace=False)


@pytest.fixture(scope="session")
def slow_tests(pytestconfig: pytest.Config) -> dict[str, float]:
    """All slow tests and how long they take, of a run that collects the whole suite."""
    here = Path(__file__).parent
    given = [pytestconfig.rootpath / arg.partition("::")[0] for arg in pytestconfig.args]
    if not any(here == path or path in here.parents for path in given):
        pytest.skip("the whole suite was not collected")
    return pytestconfig.stash[SLOW]


@pytest.fixture(autouse=True, scope="session")
def _forced(pytestconfig: pytest.Config) -> Iterator[None]:
    """All work runs where the command line says."""
    execution, master = (pytestconfig.getoption(f"--{name}") for name in ("execution", "master"))
    with forced(execution, master):
        yield


@pytest.fixture(scope="session")
def spark(_forced: None) -> Iterator[Spark]:
    """The process's Spark, started by the first test that uses it, stopped after the last."""
    from reclock.spark.session import Spark  # noqa: PLC0415 - most tests do without

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

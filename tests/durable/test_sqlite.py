"""What only a state directory can suffer: other processes, kill -9, full and broken disks."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import OperationalError

from conformance.store.kit import append, at, fresh, up
from reclock.durable import sqlite
from reclock.durable.sqlite import DATABASE_FILE, open_sqlite
from reclock.durable.store import Append, UpperMismatch
from reclock.errors import (
    Corrupt,
    Fenced,
    NewerFormat,
    OutcomeUnknown,
    StateInUse,
    StorageError,
    StorageFull,
)
from reclock.failpoints import ENVIRONMENT, EXIT_STATUS, NAMES
from reclock.ids import CollectionId
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reclock.durable.sql_store import SqlStore

A, B = CollectionId("a"), CollectionId("b")

PRELUDE = """
import os, sys
from reclock.durable.sqlite import open_sqlite
from reclock.durable.store import Append, StoredUpdate
from reclock.ids import CollectionId
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

A, B = CollectionId("a"), CollectionId("b")

def at(t):
    return Antichain.of(Timestamp(t))

def up(data, t):
    return StoredUpdate(data, Timestamp(t), 1)
"""


@contextmanager
def process(script: str, state: Path, failpoints: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run ``script`` on ``state`` in a process of its own; it is dead after the block."""
    child = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(state)],
        env={**os.environ, ENVIRONMENT: failpoints},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def lines(child: subprocess.Popen[str], number: int) -> list[str]:
    assert child.stdout is not None
    return [child.stdout.readline().strip() for _ in range(number)]


# -- one process -----------------------------------------------------------------------

HOLD = """
store = open_sqlite(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""

HOLD_AND_FORK = """
store = open_sqlite(sys.argv[1])
if os.fork() == 0:
    print("open", os.getpid(), flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_a_second_process_is_refused_and_told_the_first(tmp_path: Path) -> None:
    with process(HOLD, tmp_path) as owner:
        assert lines(owner, 1) == ["open"]
        with pytest.raises(StateInUse) as refused:
            open_sqlite(tmp_path)
        assert f"process {owner.pid} on " in refused.value.message
        assert refused.value.hint
        owner.kill()
        owner.wait()
        open_sqlite(tmp_path).close()


@pytest.mark.parametrize("script", ["HOLD_AND_FORK", "LOSE_AND_FORK"])
def test_a_child_of_a_killed_owner_keeps_nothing(tmp_path: Path, script: str) -> None:
    with process(globals()[script], tmp_path) as owner:
        (line,) = lines(owner, 1)
        orphan = int(line.removeprefix("open "))
        owner.kill()
        owner.wait()
        try:
            os.kill(orphan, 0)  # it lives
            open_sqlite(tmp_path).close()
        finally:
            os.kill(orphan, signal.SIGKILL)


FORK_AND_USE = """
from reclock.errors import StateInUse
store = open_sqlite(sys.argv[1])
store.open(A, 1)
owner = os.getpid()
child = os.fork()
if child == 0:
    for call in (lambda: store.append([Append(A, (), at(0), at(1))]), lambda: store.state(A)):
        try:
            call()
        except StateInUse as error:
            print(error.message.endswith(f"process {owner}"), flush=True)
    store.close()
    os._exit(0)
os.waitpid(child, 0)
print(store.append([Append(A, (), at(0), at(9))]), store.state(A).upper, flush=True)
"""


def test_a_forked_child_may_not_use_what_it_inherits(tmp_path: Path) -> None:
    with process(FORK_AND_USE, tmp_path) as owner:
        assert lines(owner, 3) == ["True", "True", "None {9}"]


LOSE_AND_FORK = """
import gc
open_sqlite(sys.argv[1])
gc.collect()
if os.fork() == 0:
    print("open", os.getpid(), flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_one_process_opens_a_directory_once(tmp_path: Path) -> None:
    with open_sqlite(tmp_path), pytest.raises(StateInUse, match="in this process already"):
        open_sqlite(tmp_path)
    open_sqlite(tmp_path).close()


def test_a_lock_file_says_nothing_about_who_owns(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"pid": 1, "host": "left over from a crash"}')
    open_sqlite(tmp_path).close()


def test_an_owner_that_has_not_signed_yet_is_another_process(tmp_path: Path) -> None:
    with open_sqlite(tmp_path):
        (tmp_path / "lock").write_text("")
        with pytest.raises(StateInUse, match="in use by another process"):
            open_sqlite(tmp_path)


def test_who_had_a_directory_that_was_removed_owns_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_sqlite(state) as ghost:
        ghost.check_owner()
        shutil.rmtree(state)
        with pytest.raises(Fenced, match="is gone"):
            ghost.check_owner()
        with open_sqlite(state) as owner:
            owner.check_owner()
            with pytest.raises(Fenced):
                ghost.check_owner()


def test_a_failed_opening_gives_the_directory_back(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(b"this is no database" * 1000)
    for _ in range(2):
        with pytest.raises(Corrupt):
            open_sqlite(tmp_path)
    (tmp_path / DATABASE_FILE).unlink()
    open_sqlite(tmp_path).close()


# -- kill -9 ---------------------------------------------------------------------------

APPEND_TO_BOTH = """
store = open_sqlite(sys.argv[1])
for c in (A, B):
    store.open(c, 1)
store.append([Append(c, (up("x", 0), up("x", 1), up("y", 1)), at(0), at(2)) for c in (A, B)])
store.compact(A, at(1))
"""


@pytest.mark.parametrize("point", [name for name in NAMES if name.startswith("durable.")])
def test_a_process_that_dies_at_a_failpoint_leaves_all_or_nothing(
    tmp_path: Path, point: str
) -> None:
    with process(APPEND_TO_BOTH, tmp_path, f"{point}=exit") as victim:
        assert victim.wait() == EXIT_STATUS
    written = point not in {"durable.append.before", "durable.commit.before"}
    compacted = point == "durable.compact.after"
    with open_sqlite(tmp_path) as store:
        for c, since in ((A, int(compacted)), (B, 0)):
            snapshot = store.snapshot(c)
            assert (snapshot.since, snapshot.upper) == (at(since), at(2 if written else 0))
            assert not written or snapshot.accumulate(Timestamp(1)) == {"x": 2, "y": 1}
        both = [Append(c, (), at(0), at(2)) for c in (A, B)]
        assert store.append(both) == (UpperMismatch(A, at(2)) if written else None)


APPEND_FOR_EVER = """
store = open_sqlite(sys.argv[1])
for c in (A, B):
    store.open(c, 1)
for t in range(1_000_000):
    rows = tuple(up(f"{t}-{n}", t) for n in range(20))
    assert store.append([Append(c, rows, at(t), at(t + 1)) for c in (A, B)]) is None
    print(t, flush=True)
    if t % 7 == 6:
        store.compact(A, at(t))
"""


@pytest.mark.parametrize("acknowledged", [1, 40])
def test_a_killed_appender_loses_nothing_it_was_told_is_written(
    tmp_path: Path, acknowledged: int
) -> None:
    with process(APPEND_FOR_EVER, tmp_path) as victim:
        told = int(lines(victim, acknowledged)[-1])
        victim.kill()
        victim.wait()
    with open_sqlite(tmp_path) as store:
        upper = store.state(A).upper.element()
        assert upper == store.state(B).upper.element() >= told + 1
        everything = {f"{t}-{n}": 1 for t in range(upper) for n in range(20)}
        for c in (A, B):
            assert store.snapshot(c).accumulate(upper.back()) == everything


# -- disks -----------------------------------------------------------------------------


def writer(store: SqlStore) -> sqlite3.Connection:
    """The connection that writes, as the driver has it."""
    connection = store._database._writer
    assert connection is not None
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def test_a_full_disk_loses_nothing_and_can_be_freed(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        a, b = fresh(store, "a", "b")
        append(store, a, [up("first", 0)], at(0), at(1))
        before = [store.snapshot(c) for c in (a, b)]
        (pages,) = writer(store).execute("PRAGMA page_count").fetchone()
        writer(store).execute(f"PRAGMA max_page_count = {pages}")
        large = [up(f"{n}" * 3000, 1) for n in range(9)]
        both = [Append(a, tuple(large), at(1), at(2)), Append(b, tuple(large), at(0), at(2))]
        for _ in range(2):
            with pytest.raises(StorageFull) as full:
                store.append(both)
            assert full.value.code == "53100"
            assert full.value.hint
            assert [store.snapshot(c) for c in (a, b)] == before
        writer(store).execute("PRAGMA max_page_count = 1000000")
        assert store.append(both) is None
    with open_sqlite(tmp_path) as store:
        assert len(store.snapshot(a).updates) == 10


UNTIL_THE_DISK_FAILS = """
import resource
from reclock.errors import StorageError
store = open_sqlite(sys.argv[1])
store.open(A, 1)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
t = 0
try:
    while True:
        assert store.append([Append(A, (up(f"{t}" * 5000, t),), at(t), at(t + 1))]) is None
        t += 1
except StorageError as error:
    print(type(error).__name__, t, store.state(A).upper.element(), flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
upper = store.state(A).upper
print(store.append([Append(A, (), upper, at(1000))]), flush=True)
"""


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    with process(UNTIL_THE_DISK_FAILS, tmp_path) as child:
        failed, again = lines(child, 2)
    name, told, upper = failed.split()
    assert name in {"OutcomeUnknown", "StorageError", "StorageFull"}
    assert told == upper
    assert again == "None"
    with open_sqlite(tmp_path) as store:
        assert store.state(A).upper == at(1000)
        assert [u.time for u in store.snapshot(A).updates] == list(range(int(told)))


@pytest.mark.parametrize(
    ("code", "committing", "kind"),
    [
        (sqlite3.SQLITE_FULL, False, StorageFull),
        (sqlite3.SQLITE_FULL, True, StorageFull),
        (sqlite3.SQLITE_IOERR_FSYNC, True, OutcomeUnknown),
        (sqlite3.SQLITE_IOERR_READ, False, StorageError),
        (sqlite3.SQLITE_CORRUPT_INDEX, False, Corrupt),
        (sqlite3.SQLITE_NOTADB, False, Corrupt),
        (sqlite3.SQLITE_READONLY, False, StorageError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True, StorageError),
    ],
)
def test_every_result_code_has_a_meaning(
    code: int, committing: bool, kind: type[StorageError]
) -> None:
    cause = sqlite3.OperationalError("as the driver says")
    cause.sqlite_errorcode = code  # type: ignore[misc]  # what the driver sets
    error = sqlite._explain(OperationalError("INSERT", {}, cause), committing)
    assert type(error) is kind
    assert error.detail == "as the driver says"
    assert error.hint


def test_a_damaged_page_is_corrupt_and_changes_nothing(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        store.open(A, 1)
        append(store, A, [up(f"{n}" * 2000, 0) for n in range(50)], at(0), at(1))
    file = tmp_path / DATABASE_FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:12288] + b"\xff" * (len(whole) - 12288))
    with open_sqlite(tmp_path) as store, pytest.raises(Corrupt) as damaged:
        store.snapshot(A)
    assert damaged.value.code == "XX001"
    assert damaged.value.hint
    file.write_bytes(whole)
    with open_sqlite(tmp_path) as store:
        assert len(store.snapshot(A).updates) == 50


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reclock_collection SET since = 9",
        "UPDATE reclock_collection SET upper = -1",
        "UPDATE reclock_collection SET upper = 'soon'",
        "UPDATE reclock_update SET time = -1",
        "UPDATE reclock_update SET time = 1",
        "UPDATE reclock_update SET diff = 'many'",
        "UPDATE reclock_update SET diff = 0",
        "UPDATE reclock_update SET data = 'X'",
        "UPDATE reclock_update SET digest = 'none'",
        "UPDATE reclock_collection SET version = 'new'",
        "UPDATE reclock_store SET format = 'new'",
        "UPDATE reclock_store SET format = 0",
        "UPDATE reclock_store SET format = -1",
        "DELETE FROM reclock_store",
    ],
)
def test_contradictory_rows_are_corrupt(tmp_path: Path, statement: str) -> None:
    with open_sqlite(tmp_path) as store:
        store.open(A, 1)
        append(store, A, [up("x", 0)], at(0), at(1))
    edit(tmp_path, statement)

    def read() -> None:
        with open_sqlite(tmp_path) as store:
            store.snapshot(A)

    with pytest.raises(Corrupt):
        read()


def test_a_newer_format_is_refused_and_named(tmp_path: Path) -> None:
    open_sqlite(tmp_path).close()
    edit(tmp_path, "UPDATE reclock_store SET format = 99, written_by = '7.8.9'")
    with pytest.raises(NewerFormat) as newer:
        open_sqlite(tmp_path)
    assert "format 99, written by reclock 7.8.9" in newer.value.message
    assert newer.value.hint == "use reclock 7.8.9 or newer"


def test_a_path_that_is_no_directory_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot open state directory"):
        open_sqlite(tmp_path / "file")


def test_another_program_that_writes_is_waited_for_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_SETTINGS", (*sqlite._SETTINGS, "PRAGMA busy_timeout = 20"))
    with open_sqlite(tmp_path) as store:
        store.open(A, 1)
        shell = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked by another program") as busy:
            append(store, A, [up("x", 0)], at(0), at(1))
        assert "sqlite3 shell" in (busy.value.hint or "")
        assert store.state(A).upper == at(0)
        shell.execute("ROLLBACK")
        shell.close()
        assert append(store, A, [up("x", 0)], at(0), at(1)) is None


def test_an_owner_that_was_overtaken_behind_its_lock_is_fenced(tmp_path: Path) -> None:
    """A lock that a network file system forgot does not let two processes write."""
    with open_sqlite(tmp_path) as store:
        store.open(A, 1)
        edit(tmp_path, "UPDATE reclock_store SET epoch = epoch + 1, owner = 'process 9 on x'")
        with pytest.raises(StorageError, match="another process took over") as fenced:
            append(store, A, [up("x", 0)], at(0), at(1))
        assert "process 9 on x" in (fenced.value.detail or "")


def edit(state: Path, statement: str) -> None:
    connection = sqlite3.connect(state / DATABASE_FILE, isolation_level=None)
    connection.execute(statement)
    connection.close()


# -- settings and cost -----------------------------------------------------------------


def test_every_connection_is_durable(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store, store._database.reading() as reader:
        driver = reader.connection.driver_connection
        for connection in (writer(store), driver):
            assert isinstance(connection, sqlite3.Connection)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
            assert connection.execute("PRAGMA busy_timeout").fetchone() == (5000,)


def steps(store: SqlStore, live: int) -> tuple[int, int]:
    """Count what SQLite does to append one row and fold it, beside ``live`` rows."""
    (c,) = fresh(store, f"live{live}")
    append(store, c, [up(f"{n}", 0) for n in range(live)], at(0), at(1))
    append(store, c, [up("new", 1)], at(1), at(2))
    store.compact(c, at(1))
    counted = 0

    def step() -> int:
        nonlocal counted
        counted += 1
        return 0

    writer(store).set_progress_handler(step, 1)
    append(store, c, [up("new", 2, -1), up("newer", 2)], at(2), at(3))
    appending = counted
    store.compact(c, at(2))
    writer(store).set_progress_handler(None, 1)
    assert len(store.snapshot(c).updates) == live + 1
    return appending, counted - appending


def test_cost_depends_on_the_change_and_not_on_the_collection(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        small, large = steps(store, 10), steps(store, 10_000)
    for few, many in zip(small, large, strict=True):
        assert many < 1.5 * few

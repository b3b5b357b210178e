"""What only a server can suffer: several owners, lost connections, its own defaults."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy.exc import OperationalError, ProgrammingError

from conformance.store.kit import append, at, fresh, up
from conformance.store.racing import one_of_many_appenders_wins
from reclock.durable import postgres
from reclock.durable.postgres import open_postgres
from reclock.errors import (
    Corrupt,
    Fenced,
    InvalidValue,
    NewerFormat,
    OutcomeUnknown,
    StorageError,
    StorageFull,
)
from reclock.failpoints import armed
from reclock.ids import CollectionId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.durable.sql_store import SqlStore
    from reclock.durable.store import Store

pytestmark = pytest.mark.postgres


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection to the same schema."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def writer_pid(store: SqlStore) -> int:
    connection = store._database._writer
    assert connection is not None
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver.info.backend_pid


def terminate(admin: psycopg.Connection[Any], store: SqlStore) -> None:
    admin.execute("SELECT pg_terminate_backend(%s, 5000)", [writer_pid(store)])


# -- owners ----------------------------------------------------------------------------


def test_a_takeover_waits_for_an_append_in_progress(postgres_url: str) -> None:
    with open_postgres(postgres_url) as old, ThreadPoolExecutor(1) as pool:
        (c,) = fresh(old, "c")
        taking_over = []

        def take_over() -> None:
            taking_over.append(pool.submit(open_postgres, postgres_url))
            with pytest.raises(TimeoutError):
                taking_over[0].result(timeout=0.3)

        with armed({"durable.commit.before": take_over}):
            assert append(old, c, [up("x", 0)], at(0), at(1)) is None
        with taking_over[0].result(timeout=60) as new:
            assert new.snapshot(c).updates == (up("x", 0),)
            with pytest.raises(Fenced):
                append(old, c, [up("y", 1)], at(1), at(2))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_stalled_owner_does_not_hold_up_the_next(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    shorter = [s.replace("'10s'", "'1s'") for s in postgres._SETTINGS]
    assert shorter != list(postgres._SETTINGS)
    with monkeypatch.context() as impatient:
        impatient.setattr(postgres, "_SETTINGS", shorter)
        old = open_postgres(postgres_url)
    with old:
        (c,) = fresh(old, "c")
        opened: list[Store] = []
        with (
            armed({"durable.commit.before": lambda: opened.append(open_postgres(postgres_url))}),
            pytest.raises(OutcomeUnknown),
        ):
            append(old, c, [up(f"ghost {n}", 0) for n in range(rows)], at(0), at(1))
        with opened[0] as new:
            assert new.state(c).upper == at(0)
            assert new.snapshot(c).updates == ()
            with pytest.raises(Fenced):
                append(old, c, [up("ghost", 0)], at(0), at(1))
            assert append(new, c, [up("x", 0)], at(0), at(1)) is None


def test_the_fenced_are_told_by_whom(postgres_url: str, admin: psycopg.Connection[Any]) -> None:
    with open_postgres(postgres_url) as old:
        (c,) = fresh(old, "c")
        admin.execute("UPDATE reclock_store SET epoch = epoch + 1, owner = 'process 9 on x'")
        with pytest.raises(Fenced) as fenced:
            append(old, c, [], at(0), at(1))
        assert fenced.value.detail == "process 9 on x is owner number 2; this process was 1"


def test_many_may_open_an_empty_database_at_once(postgres_url: str) -> None:
    together = threading.Barrier(4)

    def open_one(_: int) -> SqlStore:
        together.wait()
        return open_postgres(postgres_url)

    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(open_one, range(4)))
    outcomes = []
    for store in stores:
        try:
            store.open(CollectionId("c"), 1)
            outcomes.append("owner")
        except Fenced:
            outcomes.append("fenced")
        store.close()
    assert sorted(outcomes) == ["fenced", "fenced", "fenced", "owner"]


# -- connections -----------------------------------------------------------------------


def test_a_lost_connection_wrote_nothing_and_comes_back(
    postgres_url: str, admin: psycopg.Connection[Any]
) -> None:
    with open_postgres(postgres_url) as store:
        (c,) = fresh(store, "c")
        terminate(admin, store)
        with pytest.raises(StorageError, match="cannot be reached") as lost:
            append(store, c, [up("x", 0)], at(0), at(1))
        assert not isinstance(lost.value, OutcomeUnknown)
        assert "administrator command" in (lost.value.detail or "")
        assert "nothing was written" in (lost.value.hint or "")
        assert store.state(c).upper == at(0)
        assert append(store, c, [up("x", 0)], at(0), at(1)) is None
        assert store.snapshot(c).updates == (up("x", 0),)


def test_a_connection_lost_while_committing_is_told_apart(
    postgres_url: str, admin: psycopg.Connection[Any]
) -> None:
    with open_postgres(postgres_url) as store:
        (c,) = fresh(store, "c")
        with (
            armed({"durable.commit.before": lambda: terminate(admin, store)}),
            pytest.raises(OutcomeUnknown) as unknown,
        ):
            append(store, c, [up("x", 0)], at(0), at(1))
        assert unknown.value.code == "40003"
        assert "repeat the append" in (unknown.value.hint or "")
        assert store.state(c).upper == at(0)
        assert append(store, c, [up("x", 0)], at(0), at(1)) is None
        assert len(store.snapshot(c).updates) == 1


def test_readers_survive_lost_connections(
    postgres_url: str, admin: psycopg.Connection[Any]
) -> None:
    with open_postgres(postgres_url) as store:
        (c,) = fresh(store, "c")
        store.state(c)
        kill_all = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid IN "
        idle = "(SELECT pid FROM pg_stat_activity WHERE pid NOT IN (pg_backend_pid(), %s))"
        admin.execute(f"{kill_all}{idle} AND backend_type = 'client backend'", [writer_pid(store)])
        assert store.state(c).upper == at(0)


def test_a_server_that_is_not_there_is_explained() -> None:
    with pytest.raises(StorageError, match="cannot be reached") as missing:
        open_postgres("postgresql://postgres@/postgres?host=/nonexistent")
    assert missing.value.hint


@pytest.mark.parametrize("url", ["", "not an address", "mysql://h/db", "postgresql://host:port/db"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="invalid database address"):
        open_postgres(url)


def failure(sqlstate: str | None, lost: bool = False) -> OperationalError:
    cause = psycopg.OperationalError("as the server says")
    cause.sqlstate = sqlstate
    return OperationalError("INSERT", {}, cause, connection_invalidated=lost)


@pytest.mark.parametrize(
    ("error", "committing", "kind"),
    [
        (failure("53100"), False, StorageFull),
        (failure("53100"), True, StorageFull),
        (failure("XX001"), False, Corrupt),
        (failure("40001"), True, StorageError),
        (failure("57P01", lost=True), False, StorageError),
        (failure("57P01", lost=True), True, OutcomeUnknown),
        (failure(None, lost=True), True, OutcomeUnknown),
        (ProgrammingError("INSERT", {}, psycopg.errors.InsufficientPrivilege()), 0, StorageError),
    ],
)
def test_every_failure_has_a_meaning(
    error: OperationalError, committing: bool, kind: type[StorageError]
) -> None:
    explained = postgres.explain(error, committing)
    assert type(explained) is kind
    assert explained.hint


# -- the server's own ways -------------------------------------------------------------


def test_defaults_of_the_server_do_not_matter(postgres_url: str) -> None:
    weak = "%20-cdefault_transaction_isolation=serializable%20-csynchronous_commit=off"
    url = postgres_url + weak.replace("=", "%3D")
    with open_postgres(url) as store, store._database.writing() as writer:
        for setting, value in (
            ("transaction_isolation", "read committed"),
            ("synchronous_commit", "on"),
            ("idle_in_transaction_session_timeout", "10s"),
        ):
            assert writer.exec_driver_sql(f"SHOW {setting}").scalar() == value
    with open_postgres(url) as store:
        one_of_many_appenders_wins(lambda: store)


def test_a_newer_format_is_refused_and_fences_nobody(
    postgres_url: str, admin: psycopg.Connection[Any]
) -> None:
    with open_postgres(postgres_url) as store:
        (c,) = fresh(store, "c")
        admin.execute("UPDATE reclock_store SET format = 99, written_by = '7.8.9'")
        with pytest.raises(NewerFormat, match="format 99, written by"):
            open_postgres(postgres_url)
        assert append(store, c, [], at(0), at(1)) is None


def test_long_data_has_a_key_and_is_found_again(postgres_reopen: Callable[[], Store]) -> None:
    """An index over the text itself would refuse more than 2704 bytes."""
    store = postgres_reopen()
    (c,) = fresh(store, "c")
    long = "".join(chr(0x4E00 + n % 20_000) for n in range(50_000))
    append(store, c, [up(long, 0), up(long, 1, -1)], at(0), at(2))
    store.compact(c, at(1))
    assert store.snapshot(c).updates == ()

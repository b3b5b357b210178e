"""What is not well though everything moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.server.http import picture
from reclock.server.http.health import To, readiness
from reclock.server.http.history import History
from reclock.session.database import Database
from reclock.session.facts import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = 1_700_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def calm(tmp_path: Path, clock: ManualClock) -> Iterator[Database]:
    with Database(tmp_path / "state", ModelEngine(), clock=clock, background=False) as db:
        db.execute(
            "CREATE TABLE t (k INT, a INT, at TIMESTAMP WITH TIME ZONE);"
            "CREATE MATERIALIZED VIEW bad AS SELECT k, 10 / a AS q FROM t"
        )
        yield db


def seen(db: Database, *, told: bool = True) -> Any:
    return picture.overview(db, History(db), told=told)


def test_all_is_well(calm: Database) -> None:
    found = seen(calm)
    assert (found["ready"], found["reasons"]) == (True, [])


def test_a_view_that_cannot_be_read_is_told_and_everything_still_moves(calm: Database) -> None:
    calm.execute("INSERT INTO t VALUES (1, 0, NULL)")
    calm.tick()
    found = seen(calm)
    (reason,) = found["reasons"]
    assert not found["ready"]
    assert (reason["kind"], reason["name"]) == ("materialized view", "bad")
    assert (reason["state"], reason["code"]) == ("errors", "22012")
    assert reason["message"] == "division by zero"
    assert reason["hint"].startswith("divide by nullif")
    assert readiness(calm, To.SUPERUSER) == (True, [])
    (kept,) = seen(calm, told=False)["reasons"]
    assert kept.keys() == {"kind", "name", "state", "code", "hint"}


def test_a_disk_that_is_nearly_full(calm: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, shown in ((9, ["nearly full"]), (11, [])):
        disk = Disk(free << 30, 100 << 30)
        monkeypatch.setattr(calm.facts, "disk", lambda disk=disk: disk)
        assert [r["state"] for r in seen(calm)["reasons"]] == shown
    monkeypatch.setattr(calm.facts, "disk", lambda: None)
    assert seen(calm)["ready"]


def test_an_expiration_that_is_near(calm: Database, clock: ManualClock) -> None:
    calm.execute("ALTER SYSTEM SET compute_replica_expiration_offset = '10h'")
    calm.execute("ALTER SYSTEM SET expiration_renewal = false")
    calm.execute(
        "CREATE MATERIALIZED VIEW recent AS SELECT k FROM t WHERE "
        "mz_now() <= extract(epoch FROM at)::bigint * 1000 + 3600000"
    )
    calm.tick()
    left = calm.facts.expirations()
    assert "recent" in left
    assert seen(calm)["ready"]
    clock.advance(left["recent"] - 20 * 60_000)
    calm.tick()
    (reason,) = seen(calm)["reasons"]
    assert (reason["name"], reason["state"], reason["code"]) == ("recent", "expires", "57P01")
    assert "20 minutes" in reason["message"]


def test_a_source_that_has_failed_is_told_once(calm: Database) -> None:
    """Its error is in the place of its rows, too."""
    calm.execute("INSERT INTO t VALUES (1, 0, NULL)")
    calm.tick()
    reasons = [{"name": "bad"}]
    from reclock.server.http.trouble import trouble  # noqa: PLC0415

    assert list(trouble(calm, To.SUPERUSER, {r["name"] for r in reasons})) == []

"""``/readyz`` over the wire: each thing that does not move is a reason, and 503."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from databases import Opener, _no_power_is_lost, opener
from reclock.engine.supervisor import Failure
from reclock.errors import Fenced, StorageFull
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.facts import LATE_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.session.database import Database

__all__ = ["Opener", "_no_power_is_lost", "opener"]

NOW = 1_700_000_000_000


class Probe:
    """A database, and what an orchestrator and a superuser are told of it."""

    def __init__(self, opener: Opener, db: Database, url: str) -> None:
        self.opener, self.db, self.url = opener, db, url

    def tick(self, ms: int = 1_000) -> None:
        self.opener.clock.advance(ms)
        self.db.tick()

    def told(self, **headers: str) -> tuple[int, list[Any]]:
        answer = httpx.get(f"{self.url}readyz", headers=headers, timeout=30)
        found = answer.json()
        assert found["status"] == ("ready" if answer.status_code == 200 else "not ready")
        assert (answer.status_code == 200) == (not found["reasons"])
        return answer.status_code, found["reasons"]

    def reason(self) -> Any:
        """Return the one reason, which strangers get without the words of its error."""
        status, (reason,) = self.told()
        assert status == 503
        _, (kept,) = self.told(**{"x-forwarded-for": "10.0.0.9"})
        shown = {k: v for k, v in reason.items() if k in {"kind", "name", "state", "code"}}
        assert kept == shown
        return reason


@pytest.fixture
def probe(opener: Opener) -> Iterator[Probe]:
    opener.clock.set(NOW)
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    with HttpServer(db, HttpOptions(port=0, trusts_local=True)) as server:
        made = Probe(opener, db, server.url)
        made.tick()
        assert made.told() == (200, [])
        yield made
        db._core.loop = None


def fail(db: Database, error: Any) -> None:
    (pace,) = db._core.world.timelines
    failure = Failure(pace, db._core.world[pace].upper, error, 1, 0.0)
    db._core.loop = SimpleNamespace(failures={pace: failure}, stop=lambda: None)  # type: ignore[assignment]


def test_a_timeline_whose_ticks_fail(probe: Probe) -> None:
    fail(probe.db, StorageFull("no space", detail="/secret/place", hint="make room"))
    assert probe.reason() == {
        "kind": "timeline", "name": "EpochMilliseconds", "state": "failing", "code": "53100",
        "message": "no space", "detail": "/secret/place", "hint": "make room",
    }  # fmt: skip
    probe.db._core.loop = None
    assert probe.told() == (200, [])


def test_a_timeline_that_is_late(probe: Probe) -> None:
    probe.opener.clock.advance(LATE_MS)
    assert probe.told()[0] == 200, "three intervals more are no lateness"
    probe.opener.clock.advance(10_000)
    assert probe.reason() == {"kind": "timeline", "name": "EpochMilliseconds", "state": "late"}
    probe.tick()
    assert probe.told() == (200, [])


def test_a_sink_that_does_not_run(probe: Probe) -> None:
    probe.db.execute(
        "CREATE SINK s FROM t INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON ENVELOPE DEBEZIUM"
    )
    assert probe.reason() == {"kind": "sink", "name": "s", "state": "starting"}
    probe.tick()
    assert probe.told() == (200, [])
    probe.opener.kafka.running = False
    probe.db.execute("INSERT INTO t VALUES (1)")
    probe.tick()
    reason = probe.reason()
    assert (reason["kind"], reason["state"], reason["code"]) == ("sink", "stalled", "08006")
    probe.opener.kafka.running = True
    probe.tick()
    assert probe.told() == (200, [])
    exporter = next(iter(probe.db._core.exporters._exporters.values()))
    exporter._outlet.open().fence()
    probe.db.execute("INSERT INTO t VALUES (2)")
    probe.tick()
    assert ("sink", "failed") in [(r["kind"], r["state"]) for r in probe.told()[1]]


def test_a_source_before_its_first_time_and_one_that_is_gone(probe: Probe) -> None:
    topic = probe.opener.kafka.create_topic(1)
    probe.db.execute(f"CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON")
    assert probe.reason() == {"kind": "source", "name": "s", "state": "starting"}
    probe.tick()
    assert probe.told() == (200, [])
    probe.opener.kafka.delete_topic(topic)
    probe.tick()
    reason = probe.reason()
    assert (reason["kind"], reason["state"], reason["code"]) == ("source", "failed", "55000")
    assert reason["hint"]


def test_a_process_that_has_failed(probe: Probe) -> None:
    """A process that lost its state to another one lives, and must be replaced."""
    fail(probe.db, Fenced("another process took over", hint="stop this one"))
    status, reasons = probe.told()
    assert status == 503
    assert [(r["kind"], r["state"], r["code"]) for r in reasons] == [
        ("process", "failed", "57P04"), ("timeline", "failing", "57P04"),
    ]  # fmt: skip
    assert httpx.get(f"{probe.url}healthz", timeout=30).status_code == 200

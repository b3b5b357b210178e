"""How a source is: each state, as SQL, facts and /readyz see it."""

from __future__ import annotations

import threading

import pytest

from conditions import assert_facts_agree
from reclock.errors import SourceUnavailable
from reclock.ingest import cdcv2_intake as stated
from reclock.ingest.condition import Glimpses
from reclock.server.http.health import To, readiness
from reclock.session.source_facts import SOURCE_STATES


def progress(lower, upper, *counts):
    counts = [{"time": time, "count": count} for time, count in counts]
    upper = [] if upper is None else [upper]
    return {"progress": {"lower": [lower], "upper": upper, "counts": counts}}


def updates(*changes):
    return {"array": [{"data": {"id": i, "x": "x"}, "time": t, "diff": 1} for i, t in changes]}


class Seen:
    """A source, and all that is said of it."""

    def __init__(self, db, name="cdc"):
        self.db, self.name = db, name

    def __call__(self):
        assert_facts_agree(self.db)
        query = f"SELECT state FROM reclock.source_status WHERE source = '{self.name}'"
        ((state,),) = self.db.execute(query).rows
        assert state in SOURCE_STATES
        _, reasons = readiness(self.db, To.SUPERUSER)
        reason = next((r for r in reasons if r["name"] == self.name), None)
        assert reason is None or reason["state"] == state
        return state, reason

    @property
    def facts(self):
        return next(x for x in self.db.facts.sources() if x.name == self.name)


@pytest.fixture
def seen(feed):
    feed.create()
    return Seen(feed.db)


def test_a_source_that_brings_its_times_starts_runs_and_waits(feed, seen):
    state, reason = seen()
    assert (state, reason["state"]) == ("starting", "starting")
    feed.tick()
    assert seen() == ("running", None)
    feed.send(updates((1, 3)), progress(0, 5, (3, 2)))
    feed.tick()
    assert seen() == ("waiting", None)
    assert seen.facts.said == "time 3 lacks 1 of 2 updates; 1 updates wait"


def test_one_with_no_room_stalls_and_is_not_ready(feed, seen, monkeypatch):
    monkeypatch.setattr(stated, "MOST_BYTES", 1_000)
    feed.send(progress(0, 5, (3, 1_000)))
    feed.send(updates(*((n, 3) for n in range(100))))
    feed.tick()
    state, reason = seen()
    assert state == "stalled"
    assert reason["code"] == "53200"
    assert "nothing is read until these are fewer" in reason["detail"]
    assert reason["hint"]


def test_one_that_has_not_read_all_is_loading(feed, seen):
    feed.tick()
    intake = feed.db._core.intakes[feed.db._core.world.catalog.items["u1"].id]
    feed.send(updates((1, 3)))
    with intake.room:
        intake.upstream = intake.connected.source.probe(intake.frontier)
    state, _ = seen()
    assert state == "loading"


def test_one_that_contradicts_itself_fails_and_says_why_ever_after(feed, seen):
    feed.send(updates((1, 3)), progress(0, 5, (3, 1)), progress(3, 5, (3, 2)))
    feed.tick()
    feed.tick()
    for _ in range(2):
        state, reason = seen()
        assert (state, reason["state"]) == ("failed", "failed")
        assert "contradicts itself" in reason["message"]
        assert reason["hint"].startswith("drop the source")
        assert reason["code"] == "22000"
        feed.crash()
        seen.db = feed.db


def test_one_whose_sender_has_ended_is_complete(feed, seen):
    feed.send(updates((1, 3)), progress(0, None, (3, 1)))
    feed.tick()
    assert seen() == ("complete", None)
    feed.crash()
    seen.db = feed.db
    assert seen() == ("complete", None)


def test_a_source_of_the_systems_times_stalls_and_comes_back(feed, tmp_path):
    db = feed.db
    db.execute(
        f"CREATE SOURCE s (id BIGINT, x TEXT) FROM KAFKA BROKER 'b:1' TOPIC '{feed.topic}' "
        "FORMAT JSON"
    )
    seen = Seen(db, "s")
    assert seen()[0] == "starting"
    feed.tick(1_000)
    assert seen() == ("running", None)
    intake = next(i for i in db._core.intakes._intakes.values())
    intake.stall = SourceUnavailable("no way", hint="try")
    state, reason = seen()
    assert (state, reason["code"], reason["hint"]) == ("stalled", "08006", "try")
    intake.stall = None
    assert seen() == ("running", None)


def test_a_glimpse_does_not_wait_for_a_tick(feed, seen):
    """While a tick takes what was read, what was seen last counts."""
    feed.tick()
    core = feed.db._core
    source = next(i for i in core.world.catalog.items.values() if i.name == "cdc")
    intake, remap = core.intakes[source.id], core.world.of(source).bindings[source.id].remap
    glimpses, found = Glimpses(), []

    def look():
        found.append(glimpses.at(source.id, intake, remap, 0).state)

    for expected in ("starting", "running", "running"):
        if expected == "starting" or len(found) == 2:
            with intake.room:
                thread = threading.Thread(target=look, daemon=True)
                thread.start()
                thread.join(60)
                assert not thread.is_alive(), "it waits for the tick"
        else:
            look()
    assert found == ["starting", "running", "running"]

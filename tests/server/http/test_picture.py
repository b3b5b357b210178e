"""What the console draws."""

from __future__ import annotations

import json
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING

from reclock.errors import SourceUnavailable
from reclock.server.http import picture
from reclock.server.http.history import KEPT, History
from reclock.session.source_facts import SourceFacts

if TYPE_CHECKING:
    import httpx
    import pytest

    from reclock.session.database import Database


def test_everything_is_in_the_overview(client: httpx.Client) -> None:
    found = client.get("/api/overview").json()
    assert {"accounts", "total", "counter"} <= {o["name"] for o in found["objects"]}
    assert [s["name"] for s in found["sources"]] == ["counter"]
    assert found["sizes"]["accounts"]["records"] >= 2
    assert found["disk"]["free"] > 0


def test_the_graph_has_what_each_object_reads(client: httpx.Client) -> None:
    objects = {o["name"]: o for o in client.get("/api/pipeline").json()["objects"]}
    assert objects["total"]["reads"] == ["accounts"]
    assert objects["accounts"]["reads"] == []


def test_a_view_from_within(client: httpx.Client) -> None:
    found = client.get("/api/object", params={"name": "total"}).json()
    assert found["ticks"]["driver"] >= 1
    operators = {o["operator"]: o for o in found["operators"]}
    assert {"Input", "Accumulate"} <= operators.keys()
    assert operators["Accumulate"].keys() == {
        "step", "operator", "inputs", "keeps", "records", "bytes", "millis", "rows"
    }  # fmt: skip


def test_words_of_errors_are_for_superusers(db: Database) -> None:
    source = next(i for i in db._core.world.catalog.items.values() if i.name == "counter")
    intake = db._core.intakes[source.id]
    intake.stall = SourceUnavailable("it has hunter2", hint="ask")
    try:
        told = picture.overview(db, History(db), told=True)["sources"][0]["error"]
        kept = picture.overview(db, History(db), told=False)["sources"][0]["error"]
    finally:
        intake.stall = None
    assert told["message"] == "it has hunter2"
    assert kept == {"code": "08006", "hint": "ask"}


def test_history_is_an_hour_and_no_more(db: Database) -> None:
    history = History(db)
    for _ in range(3):
        history.sample()
    samples = json.loads(history.since(0))["samples"]
    assert len(samples) == 3
    assert samples[-1]["changed"] >= 2
    assert samples[-1].keys() == {
        "t", "lag", "behind", "log", "read", "changed", "written", "ticks", "tick_seconds"
    }  # fmt: skip
    assert json.loads(history.since(samples[-1]["t"])) == {"samples": []}
    assert history._samples.maxlen == KEPT


def test_an_overview_has_the_last_samples(db: Database) -> None:
    history = History(db)
    for _ in range(picture.LAST + 2):
        history.sample()
    samples = json.loads(history.since(0))["samples"]
    assert picture.overview(db, history, told=False)["samples"] == samples[-picture.LAST :]


def test_a_database_is_behind_by_bytes_of_its_log(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = SourceFacts("bank", "running", 0, 0, 0, None, 0, 1, True, lag_bytes=77, is_log=True)
    monkeypatch.setattr(db.facts, "sources", lambda: [bank])
    history = History(db)
    history.sample()
    (sample,) = history.last(1)
    assert (sample["behind"], sample["log"]) == ({}, {"bank": 77})
    (shown,) = picture.overview(db, history, told=False)["sources"]
    assert (shown["lag_bytes"], shown["lag_records"], shown["log"]) == (77, None, True)


def test_a_source_that_is_a_moment_behind_runs(db: Database) -> None:
    source = next(db.facts.sources())
    for state, lag, shown in (("loading", 900, "running"), ("loading", 60_000, "loading"),
                              ("loading", None, "loading"), ("stalled", 0, "stalled")):  # fmt: skip
        assert picture._state(replace(source, state=state, lag_ms=lag)) == shown


def test_partitions_have_what_is_bound_and_their_ends(client: httpx.Client) -> None:
    until, found = monotonic() + 20, []
    while not found and monotonic() < until:
        (source,) = client.get("/api/overview").json()["sources"]
        found = source["partitions"]
        sleep(0.1)
    ((partition, bound, end),) = found
    assert partition == "0"
    assert end is None or bound <= end

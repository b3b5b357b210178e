"""The bindings of sources, for pages that follow them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.server.http import remaps
from reclock.server.http.remaps import Remaps
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

NOW = 1_700_000_000_000


class Page:
    """What a page knows that asks for what is new."""

    def __init__(self, of: Remaps) -> None:
        self.of, self.next = of, 0
        self.got = 0
        self.steps: dict[str, dict[int, dict[str, int]]] = {}

    def ask(self) -> Any:
        holds = self.of.look()
        found = json.loads(self.of.since(self.next, json.dumps(holds).encode()))
        self.next = found["next"]
        for source in found["sources"]:
            self.got += len(source["steps"])
            self.steps.setdefault(source["name"], {}).update(dict(source["steps"]))
        return found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def ticking(tmp_path: Path, clock: ManualClock) -> Iterator[Database]:
    with Database(tmp_path / "state", ModelEngine(), clock=clock, background=False) as db:
        db.execute(
            "CREATE SOURCE s FROM LOAD GENERATOR COUNTER (MAX_CARDINALITY 100) "
            "WITH (RETAIN HISTORY FOR '1h')"
        )
        yield db


def told(db: Database, name: str = "s") -> dict[int, dict[str, int]]:
    query = f"""SELECT "timestamp", "partition", "offset" FROM reclock.bindings
                WHERE source = '{name}'"""
    found: dict[int, dict[str, int]] = {}
    for time, part, offset in db.execute(query).rows:
        found.setdefault(time, {})[part] = offset
    return found


def tick(db: Database, clock: ManualClock, times: int = 1) -> None:
    for _ in range(times):
        clock.advance(1_000)
        db.tick()


def test_a_page_has_what_sql_says_and_each_binding_comes_once(
    ticking: Database, clock: ManualClock
) -> None:
    page = Page(Remaps(ticking))
    for _ in range(5):
        tick(ticking, clock, 3)
        page.ask()
        assert page.steps["s"] == told(ticking)
    assert page.got == len(page.steps["s"]) > 10
    assert page.ask()["sources"][0]["steps"] == []


def test_a_new_page_and_one_of_an_earlier_process_get_all(
    ticking: Database, clock: ManualClock
) -> None:
    before = Page(Remaps(ticking))
    tick(ticking, clock, 3)
    before.ask()
    clock.advance(5_000)
    again = Remaps(ticking)
    for number in (0, before.next, 10**17):
        page = Page(again)
        page.next = number
        page.ask()
        assert page.steps["s"] == told(ticking)


def test_of_each_source_the_last_are_remembered(
    ticking: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remaps, "KEPT", 3)
    of = Remaps(ticking)
    tick(ticking, clock, 6)
    of.look()
    tick(ticking, clock, 2)
    page = Page(of)
    page.ask()
    assert sorted(page.steps["s"]) == sorted(told(ticking))[-3:]


def test_one_with_another_name_is_told_whole_and_one_that_is_gone_is_not_named(
    ticking: Database, clock: ManualClock
) -> None:
    page = Page(Remaps(ticking))
    tick(ticking, clock, 3)
    page.ask()
    ticking.execute("ALTER SOURCE s RENAME TO other")
    page.ask()
    assert page.steps["other"] == told(ticking, "other") != {}
    ticking.execute("DROP SOURCE other")
    assert page.ask()["sources"] == []


def test_holders_have_names(ticking: Database, clock: ManualClock) -> None:
    tick(ticking, clock)
    with ticking.subscribe("SUBSCRIBE s"):
        held = Remaps(ticking).look()
        rows = ticking.execute("SELECT object, holder, since FROM reclock.holds").rows
    assert [(h["object"], h["holder"].replace(" ", "/"), h["since"]) for h in held] == rows


def test_over_http(client: httpx.Client, stranger: httpx.Client) -> None:
    assert stranger.get("/api/time").status_code == 401
    found = client.get("/api/time").json()
    assert found.keys() == {"next", "sources", "holds"}
    assert [s["name"] for s in found["sources"]] == ["counter"]
    known = {time for time, _ in found["sources"][0]["steps"]}
    again = client.get("/api/time", params={"since": found["next"]}).json()
    assert known.isdisjoint(time for time, _ in again["sources"][0]["steps"])
    whole = client.get("/api/time", params={"since": "x"}).json()
    assert known <= {time for time, _ in whole["sources"][0]["steps"]}

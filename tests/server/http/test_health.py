"""Alive, and ready, or why not."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

from reclock.errors import SourceUnavailable

if TYPE_CHECKING:
    import httpx

    from reclock.session.database import Database


def test_alive(stranger: httpx.Client) -> None:
    answer = stranger.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_ready_once_everything_moves(stranger: httpx.Client) -> None:
    end = monotonic() + 20
    while stranger.get("/readyz").status_code != 200 and monotonic() < end:
        sleep(0.1)
    assert stranger.get("/readyz").json() == {"status": "ready", "reasons": []}


def test_a_source_that_stalls_is_a_reason_and_its_words_are_not_for_strangers(
    stranger: httpx.Client, client: httpx.Client, db: Database
) -> None:
    test_ready_once_everything_moves(stranger)
    source = next(i for i in db._core.world.catalog.items.values() if i.name == "counter")
    intake = db._core.intakes[source.id]
    pull = intake.pull
    intake.pull = lambda: False  # type: ignore[method-assign]
    intake.stall = SourceUnavailable("no way to <b>secret</b>", hint="try again")
    try:
        answer = stranger.get("/readyz")
        reason = {"kind": "source", "name": "counter", "state": "stalled", "code": "08006"}
        assert (answer.status_code, answer.json()["reasons"]) == (503, [reason])
        assert client.get("/readyz").json()["reasons"][0]["hint"] == "try again"
    finally:
        intake.stall = None
        intake.pull = pull  # type: ignore[method-assign]


def test_a_session_that_has_ended_changes_nothing(stranger: httpx.Client) -> None:
    """An old cookie, or a wrong password, is no reason for an orchestrator to restart anything."""
    test_ready_once_everything_moves(stranger)
    for headers in ({"cookie": "reclock_session=gone"}, {"authorization": "Bearer gone"}):
        assert stranger.get("/readyz", headers=headers).status_code == 200
    assert stranger.get("/readyz", auth=("reader", "wrong")).status_code == 200

"""Answers that are errors, limits, and clients that go."""

from __future__ import annotations

import threading
from time import monotonic, sleep
from typing import TYPE_CHECKING

import httpx
import pytest

from reclock.server.http import app, limits, streams
from reclock.server.http.server import HttpOptions, HttpServer

if TYPE_CHECKING:
    from reclock.session.database import Database


def test_what_is_not_there_is_not_found(client: httpx.Client) -> None:
    assert client.get("/api/nothing").status_code == 404
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
    assert client.get("/api/sql").status_code == 405


def test_a_client_that_goes_has_its_statement_stopped(client: httpx.Client, db: Database) -> None:
    """The statement waits for the session's turn of the database: it ends long before that."""
    seen = threading.Event()
    real = app.sql.answer

    def waits(session, ask):
        if "slow" in ask.query:
            with session.interrupt.waking(seen.set):
                assert seen.wait(20), "it was not stopped"
                session.interrupt.check()
        return real(session, ask)

    app.sql.answer = waits
    try:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/api/sql", json={"query": "SELECT 1 AS slow"}, timeout=0.5)
        assert seen.wait(20)
    finally:
        app.sql.answer = real


def test_streams_are_limited(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAMS", 1)
    query = {"query": "SUBSCRIBE accounts"}
    options = HttpOptions(port=0, trusts_local=True)
    with (
        HttpServer(db, options) as server,
        httpx.Client(base_url=server.url) as client,
        client.stream("GET", "/api/subscribe", params=query) as first,
    ):
        assert first.status_code == 200
        second = client.get("/api/subscribe", params=query)
        assert (second.status_code, second.json()["error"]["code"]) == (503, "53300")


def test_requests_are_limited(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BURST", 3)
    monkeypatch.setattr(limits, "RATE", 0.001)
    with (
        HttpServer(db, HttpOptions(port=0, trusts_local=True)) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        codes = [client.get("/api/session").status_code for _ in range(5)]
        assert codes == [200, 200, 200, 429, 429]
        assert client.get("/healthz").status_code == 200


def test_a_bug_says_nothing_of_itself(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("password is hunter2")

    monkeypatch.setattr(app.picture, "overview", broken)
    said: list[str] = []
    options = HttpOptions(port=0, trusts_local=True)
    with (
        HttpServer(db, options, lambda event, words, **_: said.append(event)) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        answer = client.get("/api/overview")
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.json() == {"error": {
        "code": "XX000", "message": "internal error", "detail": None,
        "hint": "the log says more", "position": None,
    }}  # fmt: skip
    assert said == ["bug"]


def test_closing_ends_streams_at_once(db: Database) -> None:
    server = HttpServer(db, HttpOptions(port=0, trusts_local=True))
    server.start()
    ended = threading.Event()

    def follow() -> None:
        query = {"query": "SUBSCRIBE accounts"}
        with httpx.stream("GET", f"{server.url}api/subscribe", params=query, timeout=30) as answer:
            for _ in answer.iter_lines():
                pass
        ended.set()

    thread = threading.Thread(target=follow)
    thread.start()
    end = monotonic() + 10
    while not len(server.parts.streams) and monotonic() < end:
        sleep(0.05)
    begun = monotonic()
    server.close()
    assert monotonic() - begun < 10
    thread.join()
    assert ended.is_set()

"""SUBSCRIBE over HTTP: whole times, resumed without gap or repeat, at nobody's cost."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from itertools import pairwise
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from engines.model_engine import ModelEngine
from reclock.server.http import streams
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path


class Events:
    """A client that reads server-sent events."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.iter_lines()
        self.last: str | None = None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        name = data = at = None
        for line in self._lines:
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("id: "):
                at = line[4:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif not line and name is not None:
                self.last = at or self.last
                yield name, data
                name = data = at = None


def changes(events: Events, count: int) -> list[list[Any]]:
    """Return so many changes."""
    found: list[list[Any]] = []
    for name, data in events:
        assert name != "failure", data
        if name == "changes":
            found += data["changes"]
        if len(found) >= count:
            return found
    raise AssertionError(found)


@pytest.fixture
def table(db: Database) -> Iterator[str]:
    db.execute("CREATE TABLE followed (n INT)")
    yield "followed"
    end = monotonic() + 10
    while True:
        try:
            db.execute("DROP TABLE followed")
        except Exception:
            if monotonic() > end:
                raise
            sleep(0.1)
        else:
            return


def test_changes_come_as_they_happen(client: httpx.Client, db: Database, table: str) -> None:
    db.execute("INSERT INTO followed VALUES (1)")
    with client.stream("GET", "/api/subscribe", params={"query": f"SUBSCRIBE {table}"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = Events(answer)
        name, head = next(iter(events))
        assert (name, [c["name"] for c in head["columns"]]) == (
            "columns", ["mz_timestamp", "mz_diff", "n"],
        )  # fmt: skip
        assert [c[1:] for c in changes(events, 1)] == [["1", 1]]
        db.execute("INSERT INTO followed VALUES (2)")
        db.execute("DELETE FROM followed WHERE n = 1")
        assert [c[1:] for c in changes(events, 2)] == [["1", 2], ["-1", 1]]


def test_lines_of_json(client: httpx.Client, db: Database, table: str) -> None:
    db.execute("INSERT INTO followed VALUES (7)")
    body = {"query": "SUBSCRIBE (SELECT n FROM followed WHERE n = $1)", "params": [7]}
    kind = {"accept": "application/x-ndjson"}
    with client.stream("POST", "/api/subscribe", json=body, headers=kind) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = map(json.loads, answer.iter_lines())
        assert next(lines)["event"] == "columns"
        found = next(line for line in lines if line["event"] == "changes")
        assert [c[1:] for c in found["changes"]] == [["1", 7]]
        assert found["timestamp"] == found["changes"][0][0]


def test_it_begins_as_of_a_time(client: httpx.Client, db: Database, table: str) -> None:
    db.execute("ALTER TABLE followed SET (RETAIN HISTORY FOR '10m')")
    begin = db.execute("INSERT INTO followed VALUES (1)").timestamp
    db.execute("INSERT INTO followed VALUES (2)")
    assert begin is not None
    body = {"query": f"SUBSCRIBE {table} -- all", "as_of": int(begin)}
    with client.stream("POST", "/api/subscribe", json=body) as answer:
        events = Events(answer)
        assert next(iter(events))[1]["as_of"] == str(int(begin))
        found = changes(events, 2)
    assert [c[1:] for c in found] == [["1", 1], ["1", 2]]
    assert int(found[0][0]) == begin < int(found[1][0])


def test_it_ends_at_up_to(client: httpx.Client, db: Database, table: str) -> None:
    now = db.execute("SELECT * FROM followed").timestamp
    assert now is not None
    query = f"SUBSCRIBE followed AS OF {int(now)} UP TO {int(now) + 1}"
    answer = client.get("/api/subscribe", params={"query": query})
    assert answer.text.strip().endswith('event: end\ndata: {"end":true}')


@pytest.mark.parametrize("patience", [30.0, 0.0])
def test_cut_off_again_and_again_nothing_is_lost_or_comes_twice(
    client: httpx.Client, db: Database, table: str, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """With what is kept for those who come back, and, without, as of the last time."""
    monkeypatch.setattr(streams, "RESUME_SECONDS", patience)
    db.execute("ALTER TABLE followed SET (RETAIN HISTORY FOR '10m')")
    count, done = 120, threading.Event()

    def write() -> None:
        for n in range(count):
            db.execute(f"INSERT INTO followed VALUES ({n})")
            sleep(0.01)
        done.set()

    writer = threading.Thread(target=write)
    seen: list[int] = []
    last: str | None = None
    writer.start()
    try:
        end = monotonic() + 60
        while len(seen) < count and monotonic() < end:
            headers = {} if last is None else {"last-event-id": last}
            query = {"query": f"SUBSCRIBE {table}"}
            with client.stream("GET", "/api/subscribe", params=query, headers=headers) as answer:
                assert answer.status_code == 200, answer.read()
                events = Events(answer)
                taken = 0
                for name, data in events:
                    if name == "changes":
                        assert data["timestamp"] is not None
                        seen += [row[-1] for row in data["changes"]]
                        taken += 1
                    if taken >= 3 or len(seen) >= count:
                        break
                last = events.last or last
    finally:
        writer.join()
    assert seen == sorted(seen)
    assert seen == list(range(count))


def test_a_client_and_a_server_that_start_again_go_on_where_they_were(tmp_path: Path) -> None:
    """All that a client keeps is the last id: of the rows after it, none is missing or twice."""
    options, seen, last = HttpOptions(port=0, trusts_local=True), list[int](), None
    for life in range(3):
        with Database(tmp_path / "state", ModelEngine()) as db, HttpServer(db, options) as server:
            if life == 0:
                db.execute("CREATE TABLE kept (n INT) WITH (RETAIN HISTORY FOR '10m')")
            for n in range(5):
                db.execute(f"INSERT INTO kept VALUES ({10 * life + n})")
            headers = {} if last is None else {"last-event-id": last}
            with httpx.stream(
                "GET", f"{server.url}api/subscribe", params={"query": "SUBSCRIBE kept"},
                headers=headers, timeout=30,
            ) as answer:  # fmt: skip
                events = Events(answer)
                took = changes(events, 5 if life else 3)
                seen += [row[-1] for row in took]
                last = events.last
            db.execute(f"INSERT INTO kept VALUES ({10 * life + 5})")  # nobody is there
    assert last is not None
    written = [10 * life + n for life in range(3) for n in range(6)]
    assert len(seen) == len(set(seen)), "something came twice"
    assert len(seen) >= 13
    assert set(seen) == set(written[: len(seen)]), "something is missing"


def test_a_time_that_is_not_kept_is_refused(client: httpx.Client, table: str) -> None:
    query = {"query": f"SUBSCRIBE {table}"}
    answer = client.get("/api/subscribe", params=query, headers={"last-event-id": "5"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "22023")
    answer = client.get("/api/subscribe", params=query, headers={"last-event-id": "x; DROP"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "22023")


def test_rights_are_looked_at_and_looked_at_again(reader: httpx.Client, db: Database) -> None:
    refused = reader.get("/api/subscribe", params={"query": "SUBSCRIBE secret"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "42501")
    db.execute("GRANT SELECT ON secret TO reader")
    with reader.stream("GET", "/api/subscribe", params={"query": "SUBSCRIBE secret"}) as answer:
        events = iter(Events(answer))
        assert next(events)[0] == "columns"
        db.execute("REVOKE SELECT ON secret FROM reader; INSERT INTO secret VALUES ('x')")
        name, data = next(e for e in events if e[0] not in {"progress"})
        assert (name, data["error"]["code"]) == ("failure", "42501")


def test_large_times_come_in_parts_and_only_the_last_has_an_id(
    client: httpx.Client, db: Database, table: str
) -> None:
    db.insert("followed", [(n,) for n in range(5_000)])
    with client.stream("GET", "/api/subscribe", params={"query": f"SUBSCRIBE {table}"}) as answer:
        parts = []
        for name, data in Events(answer):
            if name == "changes":
                parts.append(data)
            if sum(len(p["changes"]) for p in parts) == 5_000 and parts[-1]["timestamp"]:
                break
            if name == "progress" and data["timestamp"]:
                break
        assert sum(len(p["changes"]) for p in parts) == 5_000
        assert all(p["timestamp"] is None for p in parts[:-1])
        assert len(parts) >= 2


def test_who_goes_is_let_go(
    client: httpx.Client, db: Database, table: str, trusting: HttpServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(streams, "RESUME_SECONDS", 0.0)
    with client.stream("GET", "/api/subscribe", params={"query": f"SUBSCRIBE {table}"}) as answer:
        next(iter(Events(answer)))
        held = db.execute("SELECT holder FROM reclock.holds WHERE object = 'followed'").rows
        assert any(holder.startswith("subscribe") for (holder,) in held)
    end = monotonic() + 15
    while monotonic() < end:
        trusting.parts.streams.sweep()
        held = db.execute("SELECT holder FROM reclock.holds WHERE object = 'followed'").rows
        if not any(holder.startswith("subscribe") for (holder,) in held):
            return
        sleep(0.1)
    raise AssertionError(held)


def test_a_client_that_reads_nothing_holds_no_tick_up(
    db: Database, table: str, trusting: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STUCK_SECONDS", 1.0)
    slow = socket.create_connection(("127.0.0.1", trusting.port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    slow.sendall(b"GET /api/subscribe?query=SUBSCRIBE+followed HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    try:
        worst = 0.0
        for part in range(10):
            db.insert("followed", [(n,) for n in range(part * 20_000, (part + 1) * 20_000)])
            begun = monotonic()
            db.execute("SELECT count(*) FROM followed")
            worst = max(worst, monotonic() - begun)
        assert worst < 15
        end = monotonic() + 30
        while len(trusting.parts.streams) and monotonic() < end:
            sleep(0.1)
        assert not len(trusting.parts.streams), "a client that is stuck is left"
    finally:
        slow.close()
        for stream in trusting.parts.streams._parked:
            stream.until = 0.0


INTERVAL_MS = 1_000
IDLE, BUSY = 200, 20


class Ticking:
    """How ticks go while rows are written, five times a second."""

    def __init__(self, db: Database) -> None:
        self.db, self.written = db, 0
        self.lags: list[int] = []
        """How far the last complete time is behind the clock, twenty times a second."""
        self.closed: list[int] = []
        """The times that ticks have closed."""

    async def run(self, seconds: float) -> None:
        end, state = monotonic() + seconds, None
        while monotonic() < end:
            rows = [(n,) for n in range(self.written, self.written + 20)]
            await asyncio.to_thread(self.db.insert, "followed", rows)
            self.written += len(rows)
            for _ in range(4):
                await asyncio.sleep(0.05)
                (timeline,) = self.db.facts.timelines()
                self.lags.append(timeline.lag_ms or 0)
                if state != timeline.upper:
                    state = timeline.upper
                    self.closed.append(state)

    @property
    def gaps(self) -> list[int]:
        return [b - a for a, b in pairwise(self.closed) if b - a < 10 * INTERVAL_MS]


def high(values: list[int]) -> int:
    """Return what nineteen of twenty are at most."""
    return sorted(values)[len(values) * 95 // 100]


async def followed(url: str, table: str, run: Callable[[], Awaitable[None]]) -> list[int]:
    """Run something while a crowd follows; return how many changes each busy one got."""
    got = [0] * BUSY

    async def follow(client: httpx.AsyncClient, query: str, place: int | None) -> None:
        params = {"query": query}
        async with client.stream("GET", "/api/subscribe", params=params) as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if place is not None and line.startswith("data: "):
                    got[place] += len(json.loads(line[6:]).get("changes", ()))

    limits = httpx.Limits(max_connections=IDLE + BUSY + 10)
    busy = f"SUBSCRIBE {table} WITH (SNAPSHOT = false)"
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:
        tasks = [asyncio.create_task(follow(client, "SUBSCRIBE idle", None)) for _ in range(IDLE)]
        tasks += [asyncio.create_task(follow(client, busy, n)) for n in range(BUSY)]
        await asyncio.sleep(5)  # all of them are there
        await run()
        end = monotonic() + 30
        while len(set(got)) > 1 and monotonic() < end:
            await asyncio.sleep(0.2)
        await asyncio.sleep(2)
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return got


@pytest.mark.slow(seconds=120)
def test_a_crowd_of_streams_leaves_ticks_at_their_interval(
    db: Database, table: str, trusting: HttpServer
) -> None:
    """200 that are idle and 20 that are busy, for a minute, in turns with nobody.

    So a machine that is busy with other things is so in both. Client, server and ticks share one
    interpreter here.
    """
    db.execute("CREATE TABLE idle (n INT)")
    db.execute(f"ALTER SYSTEM SET timestamp_interval = '{INTERVAL_MS}ms'")
    alone, crowd = Ticking(db), Ticking(db)
    try:
        for _ in range(2):
            asyncio.run(alone.run(15))
            before = crowd.written
            got = asyncio.run(followed(trusting.url, table, lambda: crowd.run(30)))
            assert got == [crowd.written - before] * BUSY
    finally:
        db.execute("ALTER SYSTEM RESET timestamp_interval")
        db.execute("DROP TABLE idle")
    assert len(crowd.gaps) > 20
    assert high(crowd.gaps) <= INTERVAL_MS + max(INTERVAL_MS, high(alone.gaps)), (
        "ticks are left out"
    )
    assert high(crowd.lags) <= max(INTERVAL_MS, 2 * high(alone.lags)), "ticks are late"

"""Clients that mean harm: slow ones, many of them, and requests made to break something."""

from __future__ import annotations

import json
import socket
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from reclock.server.http import connection, limits
from reclock.server.http.parts import TOLD
from reclock.server.http.server import HttpOptions, HttpServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.session.database import Database


@pytest.fixture
def raw(server: HttpServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as made:
        yield made


def ended(client: socket.socket) -> bool:
    """Return whether the server has let go of a client, within the client's patience."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_request_that_never_begins_or_never_ends_is_cut_off(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        if first:
            raw.sendall(first)
        assert ended(raw)


def test_drops_of_a_header_do_not_win_time(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 1.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        until = monotonic() + 20
        try:
            while monotonic() < until:
                raw.sendall(b"x")
                sleep(0.05)
        except OSError:  # reset or broken, as it comes
            return
    raise AssertionError


def test_drops_of_a_second_header_do_not_either(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 1.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while b'"ok"' not in answer:
            answer += raw.recv(65_536)
        raw.sendall(b"GET /heal")
        assert ended(raw)


def test_a_body_that_never_comes_is_an_error(
    raw: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.5)
    raw.sendall(
        b"POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    assert b" 408 " in raw.recv(65_536).splitlines()[0]


def test_a_client_that_takes_no_answer_is_cut_off(
    trusting: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STUCK_SECONDS", 0.5)
    connections = trusting._server.server_state.connections  # type: ignore[union-attr]
    ask = json.dumps({"query": "SELECT repeat('x', 9000000) AS x"}).encode()
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.connect(("127.0.0.1", trusting.port))
        mine = raw.getsockname()
        raw.sendall(
            b"POST /api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(ask), ask)
        )
        until, seen = monotonic() + 20, False
        while monotonic() < until:
            there = any(each.client == mine for each in list(connections))
            seen = seen or there
            if seen and not there:
                return
            sleep(0.05)
    raise AssertionError


def test_connections_are_limited(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "most", lambda: 3)
    with HttpServer(db, HttpOptions(port=0)) as server:
        place = ("127.0.0.1", server.port)
        held = [socket.create_connection(place, timeout=20) for _ in range(3)]
        try:
            sleep(0.3)  # they are accepted in order, but by a loop
            with socket.create_connection(place, timeout=20) as one_more:
                assert ended(one_more)
            held.pop().close()
            until = monotonic() + 20
            while monotonic() < until:
                try:
                    assert httpx.get(f"{server.url}healthz").status_code == 200
                    break
                except httpx.TransportError:
                    sleep(0.1)
            else:
                raise AssertionError
        finally:
            for each in held:
                each.close()


@pytest.mark.parametrize("path", [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py",
    "/static/%2e%2e%2f%2e%2e%2f", "/static//etc/passwd",
    "/static/%2fetc/passwd", "/static/..\\app.py", "/static/%00", "/static/",
    "/static/vendor", "/../../etc/passwd",
])  # fmt: skip
def test_no_path_leads_out_of_what_is_served(raw: socket.socket, path: str) -> None:
    raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while part := raw.recv(65_536):
        answer += part
    assert answer.split(b" ", 2)[1] in {b"400", b"404"}
    assert b"root:" not in answer
    assert b"import" not in answer


@pytest.mark.parametrize("head", [
    "X: a\r\nb: c\r\n d", "Host: x\r\nHost: y", "Content-Length: 5\r\nContent-Length: 6",
    "Transfer-Encoding: chunked\r\nContent-Length: 4", "Transfer-Encoding: gzip", "A" * 70_000,
    "X: \x00", "Authorization: Basic \xff", "Authorization: Bearer \xff",
    "Cookie: reclock_session=\xff", "Last-Event-ID: \xff", "Origin: \r",
    "Accept-Encoding: gzip;q=nan",
])  # fmt: skip
def test_no_header_is_a_bug(server: HttpServer, head: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        request = f"GET /api/session HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n"
        raw.sendall(request.encode("latin-1"))
        assert raw.recv(65_536).split(b" ", 2)[1] in {b"400", b"401", b"403", b"431"}
    assert httpx.get(f"{server.url}healthz").status_code == 200


BOMBS = (
    b'{"query": "SELECT 1", "params": [' + b"[" * 400 + b"]" * 400 + b"]}",
    b"[" * 200_000 + b"]" * 200_000,
    b'{"query": "SELECT $1::text", "params": ["\\u0000"]}',
    b'{"query": "SELECT \'\\u0000\'"}',
    b'{"query": "SELECT \'\\ud800\'"}',
    b'{"query": "SELECT $1::json", "params": [{"a\\u0000": 1}]}',
    b'{"query": "SELECT ' + b"9" * 10_000 + b'"}',
    b'{"query": "SELECT $1::int", "params": [' + b"9" * 10_000 + b"]}",
    b'{"query": "SELECT $1::int", "params": [1e999]}',
    b'{"query": "SELECT $1::int", "params": [NaN]}',
    b'{"query": "SELECT $1::int", "params": [[[[]]]]}',
    b'{"query": "SELECT $1::json", "params": [' + b'{"a":' * 99 + b"1" + b"}" * 99 + b"]}",
    b'{"query": "SELECT ' + b"(" * 5_000 + b"1" + b")" * 5_000 + b'"}',
    b'{"query": "SELECT ' + b"-" * 1 + b"- " * 5_000 + b'1"}',
    '{"query": "SELECT 1"}'.encode("utf-16"),
    b'{"query": "SELECT 1", "limit": true}',
    b'{"query": "SELECT 1", "limit": 1e3}',
    b'{"query": null}',
    b"\xff\xfe",
    b"",
)


@pytest.mark.parametrize("body", BOMBS, ids=range(len(BOMBS)))
def test_no_body_is_a_bug(client: httpx.Client, body: bytes) -> None:
    """Each is answered, or refused with a code, and quickly."""
    begun = monotonic()
    answer = client.post(
        "/api/sql", content=body, headers={"content-type": "application/json"}
    )  # fmt: skip
    assert answer.status_code in {200, 400, 413}, answer.text[:300]
    assert answer.status_code == 200 or answer.json()["error"]["code"] != "XX000"
    assert monotonic() - begun < 20


@pytest.mark.parametrize("body", [
    b'{"user": "\\ud800", "password": "x"}', b'{"user": "a\\u0000b", "password": "x"}',
    b'{"user": [], "password": {}}', b"[]", b"[" * 16_000, b" " * 20_000 + b"{}",
])  # fmt: skip
def test_no_log_in_is_a_bug(stranger: httpx.Client, body: bytes) -> None:
    answer = stranger.post(
        "/api/login", content=body, headers={"content-type": "application/json"}
    )  # fmt: skip
    assert answer.status_code in {400, 413}, answer.text[:300]


@pytest.mark.parametrize("given", [
    {"since": "²"}, {"since": "9" * 5_000}, {"since": "-1"}, {"since": "\x00"}, {"since": ""},
])  # fmt: skip
def test_no_parameter_is_a_bug(client: httpx.Client, given: dict[str, str]) -> None:
    assert client.get("/api/history", params=given).status_code == 200


def test_times_that_are_none(client: httpx.Client) -> None:
    for last in ("9" * 20, "18446744073709551615", "0"):
        answer = client.get("/api/subscribe", params={"query": "SUBSCRIBE accounts"},
                            headers={"last-event-id": last})  # fmt: skip
        assert answer.status_code == 400, last
        assert answer.json()["error"]["code"][:2] in {"22", "55"}


def test_what_a_proxy_passes_on_is_not_of_this_machine(client: httpx.Client) -> None:
    assert client.get("/api/session").status_code == 200
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert client.get("/api/session", headers={name: "127.0.0.1"}).status_code == 401


def test_a_proxy_may_put_tls_in_front(stranger: httpx.Client) -> None:
    """A browser's Origin is then https, and the cookie is for https alone."""
    given = {"user": "reader", "password": "correct horse"}
    headers = {"Host": "db.example", "Origin": "https://db.example"}
    answer = stranger.post("/api/login", json=given, headers=headers)
    assert answer.status_code == 200
    assert "secure" in answer.headers["set-cookie"].lower()
    headers["Origin"] = "https://db.example.evil.example"
    assert stranger.post("/api/login", json=given, headers=headers).status_code == 403


def test_a_session_that_was_planted_is_not_taken_over(stranger: httpx.Client) -> None:
    """Session fixation: logging in makes a new token, whatever cookie was there."""
    stranger.cookies.set("reclock_session", "planted")
    given = {"user": "reader", "password": "correct horse"}
    answer = stranger.post("/api/login", json=given)
    token = answer.cookies["reclock_session"]
    assert token != "planted"
    stranger.cookies.clear()
    planted = {"Cookie": "reclock_session=planted"}
    assert stranger.get("/api/session", headers=planted).status_code == 401


def follow(client: httpx.Client, headers: dict[str, str]) -> Any:
    return client.stream(
        "GET", "/api/subscribe", params={"query": "SUBSCRIBE accounts"},
        headers={"accept": "application/x-ndjson", **headers},
    )  # fmt: skip


def test_a_stream_ends_with_its_session(stranger: httpx.Client) -> None:
    given = {"user": "reader", "password": "correct horse", "token": True}
    token = {"Authorization": f"Bearer {stranger.post('/api/login', json=given).json()['token']}"}
    with follow(stranger, token) as answer:
        lines = answer.iter_lines()
        assert json.loads(next(lines))["event"] == "columns"
        other = stranger.post("/api/logout", json={}, headers=token)
        assert other.status_code == 200
        last = [json.loads(line) for line in lines][-1]
    assert (last["event"], last["error"]["code"]) == ("failure", "28000")


def test_a_stream_is_not_handed_to_another_of_the_same_name(
    server: HttpServer, db: Database
) -> None:
    """Who was dropped and made again is somebody else; who lost a right gets nothing again."""
    db.execute("CREATE USER twin PASSWORD 'one two'; GRANT SELECT ON accounts TO twin")
    with httpx.Client(base_url=server.url, auth=("twin", "one two"), timeout=30) as client:
        with follow(client, {}) as answer:
            events = (json.loads(line) for line in answer.iter_lines())
            last = next(e["timestamp"] for e in events if e.get("timestamp"))
        db.execute("REVOKE SELECT ON accounts FROM twin")
        with follow(client, {"last-event-id": last}) as answer:
            assert answer.status_code == 403
    db.execute("DROP USER twin; CREATE USER twin PASSWORD 'three four'")
    with (
        httpx.Client(base_url=server.url, auth=("twin", "three four"), timeout=30) as client,
        follow(client, {"last-event-id": last}) as answer,
    ):
        assert answer.status_code == 403
    db.execute("DROP USER twin")


def test_a_log_is_not_flooded_by_strangers(db: Database) -> None:
    said: list[dict[str, Any]] = []

    def say(event: str, words: str, *, level: str = "info", **facts: Any) -> None:
        said.append({"event": event, "words": words, "level": level, **facts})

    with HttpServer(db, HttpOptions(port=0), say) as server, httpx.Client() as client:
        for _ in range(3 * TOLD):
            client.get(f"{server.url}api/session", headers={"authorization": "Bearer x"})
    assert TOLD <= len(said) < 3 * TOLD
    assert all(one["code"] == "28000" for one in said)

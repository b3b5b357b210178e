"""Who comes in: the roles of the catalog, by cookie, token or password; no other site."""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme

from reclock.server.http.openapi import PATHS
from reclock.server.http.server import HttpOptions, HttpServer

if TYPE_CHECKING:
    from reclock.session.database import Database

USER = {"user": "reader", "password": "correct horse"}


@pytest.mark.parametrize("path", ["/metrics", "/api/overview", "/api/history", "/api/pipeline",
                                  "/api/session", "/api/object?name=total"])  # fmt: skip
def test_a_stranger_learns_nothing(stranger: httpx.Client, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "28000"
    assert "accounts" not in answer.text


def test_health_and_the_page_are_for_everybody(stranger: httpx.Client) -> None:
    for path in ("/", "/healthz", "/readyz", "/api/openapi.json"):
        assert stranger.get(path).status_code in {200, 503}


def test_a_cookie_is_a_session_that_scripts_cannot_read(stranger: httpx.Client) -> None:
    answer = stranger.post("/api/login", json=USER)
    assert answer.status_code == 200, answer.text
    told = answer.headers["set-cookie"].lower()
    assert "httponly" in told
    assert "samesite=strict" in told
    assert stranger.get("/api/session").json() == {"user": "reader", "superuser": False}
    stranger.post("/api/logout", json={})
    assert stranger.get("/api/session").status_code == 401


def test_logging_out_ends_the_session_not_just_the_cookie(stranger: httpx.Client) -> None:
    stranger.post("/api/login", json=USER)
    kept = dict(stranger.cookies)
    stranger.post("/api/logout", json={})
    for name, value in kept.items():
        stranger.cookies.set(name, value)
    assert stranger.get("/api/session").status_code == 401


def test_a_program_gets_a_token(stranger: httpx.Client) -> None:
    token = stranger.post("/api/login", json={**USER, "token": True}).json()["token"]
    assert not stranger.cookies
    held = {"authorization": f"Bearer {token}"}
    assert stranger.get("/api/session", headers=held).json()["user"] == "reader"
    assert stranger.get("/metrics", headers=held).status_code == 200
    wrong = {"authorization": f"Bearer {token}x"}
    assert stranger.get("/api/session", headers=wrong).status_code == 401


def test_a_session_ends_with_the_password(stranger: httpx.Client, db: Database) -> None:
    db.execute("CREATE USER fleeting PASSWORD 'one'")
    stranger.post("/api/login", json={"user": "fleeting", "password": "one"})
    assert stranger.get("/api/session").status_code == 200
    db.execute("ALTER USER fleeting PASSWORD 'two'")
    assert stranger.get("/api/session").status_code == 401
    basic = ("fleeting", "one")
    assert stranger.get("/api/session", auth=basic).status_code == 401
    db.execute("DROP USER fleeting")


def test_a_wrong_password_and_an_unknown_user_look_the_same(stranger: httpx.Client) -> None:
    one = stranger.post("/api/login", json={"user": "reader", "password": "wrong"})
    two = stranger.post("/api/login", json={"user": "nobody", "password": "wrong"})
    assert one.status_code == two.status_code == 401
    said = one.json()["error"]["message"].replace("reader", "X")
    assert said == two.json()["error"]["message"].replace("nobody", "X")


def test_many_wrong_passwords_are_slowed_down(db: Database) -> None:
    with HttpServer(db, HttpOptions(port=0)) as server, httpx.Client(base_url=server.url) as client:
        codes = [
            client.post("/api/login", json={"user": "reader", "password": str(n)}).json()["error"]
            for n in range(12)
        ]
        assert codes[-1]["code"] == "53300"


@pytest.mark.parametrize("headers", [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
])  # fmt: skip
def test_a_page_of_another_site_gets_nothing(client: httpx.Client, headers: dict[str, str]) -> None:
    for answer in (
        client.get("/api/overview", headers=headers),
        client.get("/metrics", headers=headers),
        client.get("/api/subscribe?query=SUBSCRIBE+accounts", headers=headers),
        client.post("/api/sql", json={"query": "SELECT 1"}, headers=headers),
        client.post("/api/login", json=USER, headers=headers),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "42501")


def test_a_form_of_another_site_cannot_be_sql(client: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = client.post(
            "/api/sql", content=b'{"query": "SELECT 1"}', headers={"content-type": kind}
        )
        assert answer.status_code == 400


def test_a_name_that_was_made_to_mean_this_machine_is_not_trusted(client: httpx.Client) -> None:
    assert client.get("/api/session").json()["superuser"] is True
    for host in ("evil.example", "evil.example:6876", "127.0.0.1.evil.example"):
        assert client.get("/api/session", headers={"host": host}).status_code == 401
    assert client.get("/api/session", headers={"host": "localhost:1"}).status_code == 200


def test_answers_tell_browsers_to_be_strict(client: httpx.Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    nonces = {client.get("/").headers["content-security-policy"] for _ in range(3)}
    assert len(nonces) == 3
    for path in ("/", "/api/session", "/healthz", "/api/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


def test_tls_is_that_of_the_certificate(db: Database) -> None:
    ca = trustme.CA()
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(server_side)
    known = ssl.create_default_context()
    ca.configure_trust(known)
    with (
        HttpServer(db, HttpOptions(port=0, tls=server_side)) as server,
        httpx.Client(base_url=server.url, verify=known) as client,
    ):
        assert server.url.startswith("https://")
        answer = client.post("/api/login", json=USER)
        assert "secure" in answer.headers["set-cookie"].lower()
        assert answer.headers["set-cookie"].startswith("__Host-")
        assert "max-age" in answer.headers["strict-transport-security"]
        assert client.get("/api/session").json()["user"] == "reader"


def test_secrets_are_never_sent(client: httpx.Client, db: Database) -> None:
    """Neither a password nor what it is checked with, to anybody, not even to a superuser."""
    db.execute("CREATE USER guarded PASSWORD 'hunter2-hunter2'")
    verifier = db.roles.find("guarded").verifier  # type: ignore[union-attr]
    hidden = ["hunter2", "SCRAM-SHA-256", *re.findall(r"[\w+/]{20,}=*", str(verifier))]
    texts = [client.get(path).text for path in PATHS if path != "/api/subscribe"]
    queries = (
        "SELECT * FROM pg_roles", "SELECT * FROM pg_authid", "SELECT * FROM pg_shadow",
        "SELECT * FROM pg_user", "SELECT * FROM reclock.objects", "SHOW ALL",
        "SELECT * FROM reclock.settings",
    )  # fmt: skip
    texts += [client.post("/api/sql", json={"query": query}).text for query in queries]
    for text in texts:
        for secret in hidden:
            assert secret not in text
    db.execute("DROP USER guarded")

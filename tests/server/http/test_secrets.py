"""Passwords of sources, sinks and roles: no answer and no line of the log has one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from databases import Opener, _no_power_is_lost, opener
from reclock.server.http.openapi import PATHS
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.system import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Opener", "_no_power_is_lost", "opener"]

SOURCE, SINK, ROLE, KEY = "hunter2-of-the-source", "hunter2-of-the-sink", "hunter2-role", "hunter2k"
NAMED = "hunter2-with-a-name"
SECRETS = (SOURCE, SINK, ROLE, KEY, NAMED)


@pytest.fixture
def said() -> list[Any]:
    return []


@pytest.fixture
def client(opener: Opener, said: list[Any]) -> Iterator[httpx.Client]:
    """A superuser asks of a pipeline whose broker has gone, so that errors are shown, too."""
    topic = opener.kafka.create_topic(1)
    db = opener()
    options = "\"kafka.sasl.password\" = '{}', \"kafka.ssl.key.password\" = '{}'"
    db.execute(
        f"CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
        f"WITH ({options.format(SOURCE, KEY)});"
        f"CREATE SECRET word AS '{NAMED}';"
        "CREATE CONNECTION c TO KAFKA (BROKER 'b:1', SASL PASSWORD SECRET word);"
        f"CREATE SOURCE named (a INT) FROM KAFKA CONNECTION c TOPIC '{topic}' FORMAT JSON;"
        "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM s;"
        "CREATE SINK k FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON ENVELOPE DEBEZIUM "
        f"WITH ({options.format(SINK, KEY)});"
        f"CREATE USER joe PASSWORD '{ROLE}' SUPERUSER"
    )
    for running in (True, False):
        opener.kafka.running = running
        opener.clock.advance(1_000)
        db.tick()

    def say(event: str, words: str, **facts: Any) -> None:
        said.append((event, words, facts))

    options = HttpOptions(port=0, trusts_local=True)
    with (
        HttpServer(db, options, say) as server,
        httpx.Client(base_url=server.url, timeout=30, auth=("joe", ROLE)) as made,
    ):
        server.parts.history.sample()
        yield made


def assert_kept(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text


def test_no_path_has_one(client: httpx.Client) -> None:
    asked = {"/api/object": {"name": "m"}, "/api/subscribe": None, "/api/login": None}
    for path in PATHS:
        if asked.get(path, {}) is not None and "get" in PATHS[path]:
            answer = client.get(path, params=asked.get(path))
            assert answer.status_code in {200, 503}, path
            assert_kept(answer.text)
    found = client.get("/api/overview").json()
    assert {source["state"] for source in found["sources"]} == {"stalled"}


def test_no_relation_has_one(client: httpx.Client) -> None:
    queries = [f"SELECT * FROM {name}" for name in RELATIONS]
    queries += ["SHOW CREATE SECRET word", "SHOW CREATE CONNECTION c", "SHOW CREATE SOURCE named"]
    queries += ["SHOW CREATE SOURCE s", "SHOW CREATE SINK k", "EXPLAIN SELECT * FROM m"]
    queries += [
        f"SELECT * FROM pg_catalog.{name}" for name in ("pg_authid", "pg_roles", "pg_class")
    ]
    queries += ["SELECT pg_get_viewdef('m'::regclass)"]
    for query in queries:
        answer = client.post("/api/sql", json={"query": query})
        assert_kept(answer.text)
        assert answer.status_code == 200 or "pg_" in query, (query, answer.text)
    shown = client.post("/api/sql", json={"query": "SHOW CREATE SOURCE s"}).text
    assert "'***'" in shown


def test_errors_and_the_log_have_none(client: httpx.Client, said: list[Any]) -> None:
    wrong = (
        f"CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b:1' TOPIC 'no' FORMAT JSON "
        f"WITH (\"kafka.sasl.password\" = '{SOURCE}')",
        f"CREATE SOURCE x (a INT) FROM KAFKA BROKER 'b:1' TOPIC 'no' FORMAT JSON "
        f"WITH (\"kafka.sasl.password\" = '{SOURCE}')",
        f"CREATE USER joe PASSWORD '{ROLE}'",
        f"CREATE SECRET word AS '{NAMED}'",
        f"ALTER SECRET nothing AS '{NAMED}'",
    )
    for query in wrong:
        answer = client.post("/api/sql", json={"query": query})
        assert answer.status_code >= 400
        assert_kept(answer.text)
    answer = client.post("/api/login", json={"user": "joe", "password": f"{ROLE} not"})
    assert answer.status_code == 401
    assert_kept(answer.text + repr(said))
    assert said

"""The description is the interface: every route, and answers of the shape it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    import httpx

    from reclock.server.http.server import HttpServer

METHODS = {"get", "post"}


def test_every_route_is_described_and_no_other(client: httpx.Client, trusting: HttpServer) -> None:
    from reclock.server.http.app import App  # noqa: PLC0415

    told = client.get("/api/openapi.json").json()["paths"]
    routes = {
        (route.path, method.lower())
        for route in App(trusting.parts).asgi.routes
        for method in getattr(route, "methods", None) or ()
        if method != "HEAD"
    }
    assert routes == {(path, method) for path, found in told.items() for method in found}


CASES = [
    ("get", "/healthz", None, 200),
    ("get", "/readyz", None, 200),
    ("get", "/api/session", None, 200),
    ("post", "/api/sql", {"query": "SELECT 1 AS a, 'x' AS b"}, 200),
    ("post", "/api/sql", {"query": "CREATE TABLE IF NOT EXISTS accounts (a INT)"}, 200),
    ("post", "/api/sql", {"query": "SELECT 1 AS a", "as_of": 1_000}, 200),
    ("post", "/api/sql", {"query": "SELEC"}, 400),
    ("post", "/api/sql", {"query": "SELECT * FROM nothing"}, 404),
    ("post", "/api/login", {"user": "reader", "password": "correct horse", "token": True}, 200),
    ("post", "/api/login", {"user": "reader", "password": "wrong"}, 401),
    ("post", "/api/logout", {}, 200),
    ("get", "/api/overview", None, 200),
    ("get", "/api/history", None, 200),
    ("get", "/api/pipeline", None, 200),
    ("get", "/api/object?name=total", None, 200),
    ("get", "/api/object?name=nothing", None, 404),
    ("get", "/api/subscribe?query=SELECT+1", None, 400),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), CASES)
def test_answers_have_the_shape_that_is_described(
    client: httpx.Client, method: str, path: str, body: Any, status: int
) -> None:
    described = client.get("/api/openapi.json").json()
    operation = described["paths"][path.partition("?")[0]][method]
    if body is not None:
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.validate(body, {**asked, "components": described["components"]})
    answer = client.request(method, path, json=body)
    assert answer.status_code in {status, 503}, answer.text
    told = operation["responses"][str(answer.status_code)]
    schema = told["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "components": described["components"]})

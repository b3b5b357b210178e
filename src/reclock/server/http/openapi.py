"""The description of the interface, as OpenAPI 3.1.

Tests: tests/server/http/test_openapi.py compares it with the routes and with real answers.
"""

from __future__ import annotations

from typing import Any, Final

import reclock

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_MAYBE: Final[Json] = {"type": ["string", "null"]}


def _of(properties: Json, *optional: str) -> Json:
    required = [name for name in properties if name not in optional]
    return {
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


SCHEMAS: Final[Json] = {
    "Error": _of(
        {
            "error": _of(
                {
                    "code": {"type": "string", "description": "the SQLSTATE"},
                    "message": _TEXT,
                    "detail": _MAYBE,
                    "hint": _MAYBE,
                    "position": {
                        "type": ["integer", "null"],
                        "description": "where in the query, in characters from 1",
                    },
                }
            )
        }
    ),
    "Column": _of({"name": _TEXT, "type": {"type": "string", "description": "the SQL type"}}),
    "Query": _of(
        {
            "query": _TEXT,
            "params": {"type": "array", "items": {}, "description": "the values of $1, $2, …"},
            "limit": {"type": "integer", "minimum": 0, "maximum": 100_000, "default": 10_000},
            "as_of": {
                "type": ["integer", "string", "null"],
                "description": "the time to read at: milliseconds, or a date and time",
            },
        },
        "params",
        "limit",
        "as_of",
    ),
    "Answer": _of(
        {
            "tag": {"type": "string", "description": "what was done, as PostgreSQL says it"},
            "columns": {"type": "array", "items": {"$ref": "#/components/schemas/Column"}},
            "rows": {"type": "array", "items": {"type": "array", "items": {}}},
            "truncated": {"type": "boolean", "description": "whether there are more rows"},
            "timestamp": {
                "type": ["string", "null"],
                "description": "the time a read was answered at, or a write committed at",
            },
            "notices": {"type": "array", "items": _TEXT},
        }
    ),
    "Health": _of({"status": _TEXT}),
    "Readiness": _of(
        {
            "status": {"enum": ["ready", "not ready"]},
            "reasons": {
                "type": "array",
                "items": _of(
                    {
                        "kind": {"enum": ["process", "timeline", "source", "sink"]},
                        "name": _TEXT,
                        "state": _TEXT,
                        "code": _TEXT,
                        "message": _TEXT,
                        "detail": _MAYBE,
                        "hint": _MAYBE,
                    },
                    "code",
                    "message",
                    "detail",
                    "hint",
                ),
            },
        }
    ),
    "Login": _of(
        {
            "user": _TEXT,
            "password": _TEXT,
            "token": {"type": "boolean", "description": "a token in place of a cookie"},
        },
        "password",
        "token",
    ),
    "Token": _of(
        {"user": _TEXT, "token": _TEXT, "expires_in": {"type": "integer"}},
        "user",
        "token",
        "expires_in",
    ),
    "Session": _of({"user": _MAYBE, "superuser": {"type": "boolean"}}),
    "Nothing": _of({}),
    "Picture": {"type": "object", "description": "for the console; may change in any version"},
}


def _answer(schema: str, meaning: str, kind: str = "application/json") -> Json:
    return {
        "description": meaning,
        "content": {kind: {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


def _operation(meaning: str, ok: Json, *errors: int, body: str | None = None, **more: Any) -> Json:
    made: Json = {
        "summary": meaning,
        "responses": {"200": ok} | {str(e): _answer("Error", "why not") for e in errors},
        **more,
    }
    if body is not None:
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{body}"}}},
        }
    return made


_FREE: Final[Json] = {"security": []}
_STREAM: Final[Json] = {
    "description": "events: columns, changes, progress, end, failure; docs/http.md has their parts",
    "content": {"text/event-stream": {}, "application/x-ndjson": {}},
}
_LAST: Final[Json] = {
    "name": "Last-Event-ID", "in": "header", "schema": _TEXT,
    "description": "the id of the last event that came: go on after it",
}  # fmt: skip
_QUERY: Final[Json] = {"name": "query", "in": "query", "required": True, "schema": _TEXT}


def _in_query(name: str) -> Json:
    return {"name": name, "in": "query", "schema": _TEXT}


_PLAIN: Final[Json] = {"description": "as it says", "content": {}}

PATHS: Final[dict[str, Json]] = {
    "/": {"get": _operation("the console", _PLAIN, **_FREE)},
    "/healthz": {"get": _operation("the process lives", _answer("Health", "it does"), **_FREE)},
    "/readyz": {
        "get": {
            **_operation("everything moves", _answer("Readiness", "it does"), **_FREE),
            "responses": {
                "200": _answer("Readiness", "it does"),
                "503": _answer("Readiness", "what does not"),
            },
        }
    },
    "/metrics": {"get": _operation("metrics for Prometheus", _PLAIN, 401)},
    "/api/openapi.json": {"get": _operation("this description", _PLAIN, **_FREE)},
    "/api/login": {
        "post": _operation(
            "begin a session",
            _answer("Token", "a cookie, or a token"),
            400,
            401,
            body="Login",
            **_FREE,
        )
    },
    "/api/logout": {
        "post": _operation(
            "end a session", _answer("Nothing", "it has ended"), 400, body="Nothing", **_FREE
        )
    },
    "/api/session": {"get": _operation("who asks", _answer("Session", "who"), 401)},
    "/api/sql": {
        "post": _operation(
            "run statements",
            _answer("Answer", "what the last one gave"),
            400,
            401,
            403,
            404,
            408,
            413,
            429,
            500,
            503,
            body="Query",
        )
    },
    "/api/subscribe": {
        "get": _operation(
            "follow a SUBSCRIBE", _STREAM, 400, 401, 403, 404, 503, parameters=[_QUERY, _LAST]
        ),
        "post": _operation(
            "follow a SUBSCRIBE with parameters",
            _STREAM,
            400,
            401,
            403,
            404,
            503,
            body="Query",
            parameters=[_LAST],
        ),
    },
    "/api/overview": {"get": _operation("how all does", _answer("Picture", "a picture"), 401)},
    "/api/history": {
        "get": _operation(
            "the last hour", _answer("Picture", "samples"), 401, parameters=[_in_query("since")]
        )
    },
    "/api/time": {
        "get": _operation(
            "the bindings of sources, and who holds what",
            _answer("Picture", "bindings and holds"),
            401,
            parameters=[_in_query("since")],
        )
    },
    "/api/pipeline": {"get": _operation("the graph", _answer("Picture", "objects"), 401)},
    "/api/object": {
        "get": _operation(
            "the operators of an object",
            _answer("Picture", "operators"),
            401,
            404,
            parameters=[_in_query("name")],
        )
    },
}


def description() -> Json:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "reclock", "version": reclock.__version__},
        "paths": PATHS,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "reclock_session"},
            },
        },
        "security": [{"basic": []}, {"bearer": []}, {"cookie": []}],
    }

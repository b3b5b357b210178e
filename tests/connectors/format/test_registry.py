"""Schemas by their id: found once, refused, missing, unavailable; secrets stay secret."""

from __future__ import annotations

import json
import pickle
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest

from reclock.connectors.format.decoder import Fault
from reclock.connectors.format.registry import Registry
from reclock.errors import InvalidValue, SourceUnavailable
from reclock.testing.schema_registry import running_registry

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGIN = "registry.basic.auth.user.info"
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Serve one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_schema_is_asked_for_once() -> None:
    with running_registry() as server:
        number = server.register("s", {"type": "long", "logicalType": "timestamp-millis"})
        registry = Registry.of(server.url + "/", {})
        writers = [registry.writer(number), pickle.loads(pickle.dumps(registry)).writer(number)]
        assert server.asked == [f"/schemas/ids/{number}"]
    assert writers[0] is writers[1]
    assert writers[0].wire == {"type": "long"}
    assert writers[0].root == {"type": "long", "logicalType": "timestamp-millis"}


def test_schemas_that_refer_to_others() -> None:
    with running_registry() as server:
        server.register("in ner/1", INNER)
        link = {"name": "Inner", "subject": "in ner/1", "version": 1}
        middle = {"type": "record", "name": "Middle", "fields": [{"name": "i", "type": "Inner"}]}
        server.register("middle", middle, [link])
        outer = {"type": "record", "name": "Outer", "fields": [{"name": "m", "type": "Middle"}]}
        other = {"name": "Middle", "subject": "middle", "version": 1}
        number = server.register("outer", outer, [other, link])
        writer = Registry.of(server.url, {}).writer(number)
        assert set(writer.names) == {"Inner", "Middle", "Outer"}
        lost = server.register("lost", outer, [{**other, "version": 9}])
        with pytest.raises(Fault, match='it refers to version 9 of "middle", which is missing'):
            Registry.of(server.url, {}).writer(lost)


def test_what_is_no_usable_schema_is_a_fault() -> None:
    with running_registry() as server:
        registry = Registry.of(server.url, {})
        number = server.add("proto", {"schema": "…", "schemaType": "PROTOBUF"})
        with pytest.raises(Fault, match="schema 1 is not an Avro schema: PROTOBUF"):
            registry.writer(number)
        number = server.register("bad", {"type": "record"})
        with pytest.raises(Fault, match="schema 2: not an Avro schema: "):
            registry.writer(number)
        with pytest.raises(Fault, match="schema 7 is not in the registry"):
            registry.writer(7)
        number = server.register("later", "string")
        assert registry.writer(number).root == "string"


def test_basic_authentication_and_no_secret_in_sight() -> None:
    with running_registry("joe:hunter2") as server:
        number = server.register("s", "string")
        registry = Registry.of(server.url, {LOGIN: "joe:hunter2", "other": "ignored"})
        assert registry.writer(number).root == "string"
        wrong = Registry.of(server.url, {LOGIN: "joe:wrong"})
        with pytest.raises(SourceUnavailable) as raised:
            wrong.writer(number)
    assert raised.value.code == "28000"
    assert raised.value.hint == "look at the registry.* options"
    assert "wrong" not in str(raised.value)
    assert "hunter2" not in repr(registry)


def test_a_token_is_sent_as_one() -> None:
    with answering(403, b'{"message": "not for t0k3n"}') as url:
        registry = Registry.of(url, {"registry.bearer.auth.token": "t0k3n"})
        with pytest.raises(SourceUnavailable) as raised:
            registry.writer(1)
    assert raised.value.code == "42501"
    assert raised.value.detail == "not for ***"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"oops"), (503, b"{}"), (404, b"<html>"), (404, b'{"error_code": 404}'),
        (200, b"<html>"), (200, b"[]"), (200, b'{"schema": 1}'),
    ],
)  # fmt: skip
def test_answers_of_no_registry_are_tried_again(status: int, body: bytes) -> None:
    with answering(status, body) as url, pytest.raises(SourceUnavailable) as raised:
        Registry.of(url, {}).writer(1)
    assert raised.value.code == "08006"
    assert raised.value.message == f"the schema registry at {url} does not answer"


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("localhost:8081", {}, '"localhost:8081" is not the address of a schema registry'),
        ("ftp://host", {}, '"ftp://host" is not the address of a schema registry'),
        ("http://joe:secret@host", {}, "the address of a schema registry must not hold a password"),
        ("http://host", {"registry.basic.auth": "x"}, 'there is no option "registry.basic.auth"'),
    ],
)
def test_refusals(url: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        Registry.of(url, options)
    assert raised.value.message == message
    assert "secret" not in str(raised.value)


def test_certificates_that_are_not_there() -> None:
    registry = Registry.of("https://127.0.0.1:1", {"registry.ssl.ca.location": "/no/such/file"})
    with pytest.raises(InvalidValue, match="the certificates of a schema registry cannot be used"):
        registry.writer(1)


def test_the_registry_of_the_test_kit() -> None:
    with running_registry() as server:
        body = json.dumps({"schema": '"int"'}).encode()
        posted = Request(f"{server.url}/subjects/a%2Fb/versions", body)
        for _ in range(2):
            with urlopen(posted) as answer:
                assert json.load(answer) == {"id": 1}
        server.register("a/b", "long")
        with urlopen(f"{server.url}/subjects/a%2Fb/versions/latest") as answer:
            assert json.load(answer) == {
                "subject": "a/b",
                "version": 2,
                "id": 2,
                "schema": '"long"',
            }

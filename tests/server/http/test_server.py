"""Where it listens."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from reclock.errors import InvalidValue
from reclock.server.http.server import HttpOptions, HttpServer

if TYPE_CHECKING:
    import httpx

    from reclock.session.database import Database


def test_a_port_that_is_taken_is_an_error_that_says_so(db: Database, server: HttpServer) -> None:
    with pytest.raises(InvalidValue, match="cannot listen for HTTP") as raised:
        HttpServer(db, HttpOptions(port=server.port)).start()
    assert "--http" in str(raised.value.hint)


def test_loopback_unless_told_otherwise() -> None:
    assert HttpOptions().host == "127.0.0.1"


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head(
    trusting: HttpServer, client: httpx.Client
) -> None:
    """Head and body are two writes: with Nagle's algorithm the second waits for up to 40 ms."""
    client.get("/healthz")  # the connection stays open
    assert trusting._server is not None
    connections = tuple(trusting._server.server_state.connections)
    assert connections
    for connection in connections:
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

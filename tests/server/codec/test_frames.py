"""Streams of bytes: however they are cut, the same messages come out; lengths are bounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import ProtocolViolation
from reclock.server.codec.frames import FIRST_LIMIT, Frames
from reclock.server.codec.frontend import (
    Parse,
    Query,
    Startup,
    Sync,
    read_first,
    read_frontend,
    write_first,
)
from reclock.server.codec.message import frame

MESSAGES = [Query("SELECT 1"), Parse("s", "SELECT $1", (23,)), Sync(), Query("")]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 20), max_size=20))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    stream = b"".join(map(frame, MESSAGES))
    frames, found = Frames(), []
    for cut in [*cuts, len(stream)]:
        frames.feed(stream[:cut])
        stream = stream[cut:]
        while (message := frames.next(read_frontend)) is not None:
            found.append(message)
    assert found == MESSAGES
    assert frames.waiting == 0


def test_a_first_message_has_no_letter() -> None:
    startup = Startup(3 << 16, (("user", "joe"),))
    frames = Frames()
    frames.feed(write_first(startup)[:-1])
    assert frames.first(read_first) is None
    frames.feed(b"\0")
    assert frames.first(read_first) == startup


@pytest.mark.parametrize("length", [0, 3, -1, FIRST_LIMIT + 1, 2**31 - 1])
def test_impossible_lengths_are_refused_before_they_are_kept(length: int) -> None:
    frames = Frames()
    frames.feed(b"Q" + length.to_bytes(4, signed=True))
    with pytest.raises(ProtocolViolation, match="invalid length"):
        frames.next(read_frontend)


@settings(max_examples=100)
@given(st.binary(max_size=64))
def test_random_bytes_never_crash(data: bytes) -> None:
    frames = Frames()
    frames.feed(data)
    try:
        while frames.next(read_frontend) is not None:
            pass
    except ProtocolViolation:
        pass

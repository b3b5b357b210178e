"""Every message: what is written is read back; what nobody wrote is refused, never a crash."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import ProtocolViolation
from reclock.server.codec import field as f
from reclock.server.codec.backend import (
    BACKEND,
    ColumnDescription,
    ParameterDescription,
    RowDescription,
    read_backend,
)
from reclock.server.codec.frontend import (
    FRONTEND,
    Bind,
    CancelRequest,
    GssEncRequest,
    Malformed,
    Parse,
    Query,
    SaslInitial,
    SslRequest,
    Startup,
    read_first,
    read_frontend,
    write_first,
)
from reclock.server.codec.message import Message, frame, read, write

NUMBERS = {"!h": (-(2**15), 2**15 - 1), "!H": (0, 2**16 - 1), "!i": (-(2**31), 2**31 - 1)}
NUMBERS |= {"!I": (0, 2**32 - 1), "!B": (0, 255)}
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
LETTERS = st.characters(min_codepoint=1, max_codepoint=255)
EVERY = [*FRONTEND.values(), *BACKEND.values(), SaslInitial]


def of(field: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one per field
    match field:
        case f.Number(layout):
            return st.integers(*NUMBERS[layout])
        case f.Letter():
            return LETTERS
        case f.Text():
            return TEXTS
        case f.Rest():
            return st.binary(max_size=8)
        case f.Value():
            return st.none() | st.binary(max_size=8)
        case f.Many(element, _):
            return st.lists(of(element), max_size=4).map(tuple)
        case f.UntilZero(f.Together((f.Text(), second))):
            return st.lists(st.tuples(TEXTS.filter(bool), of(second)), max_size=4).map(tuple)
        case f.UntilZero(element):
            return st.lists(of(element), max_size=4).map(tuple)
        case f.Together(parts):
            return st.tuples(*map(of, parts))
    numbers = [st.integers(0, 2**15 - 1) for _ in fields(ColumnDescription)[1:]]
    return st.lists(st.builds(ColumnDescription, TEXTS, *numbers), max_size=3).map(tuple)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
@settings(max_examples=15)
@given(st.data())
def test_what_is_written_is_read_back(kind: type[Message], data: st.DataObject) -> None:
    message = kind(*(data.draw(of(field)) for field in kind.layout))
    assert read(kind, write(message)) == message


def test_every_message_of_the_protocol_has_a_letter() -> None:
    assert set(FRONTEND) == set("pQPBDECHSFdcfX")
    assert set(BACKEND) == set("RKvSZ123ntTDCIsGHWdcENAV")
    assert RowDescription.layout


@pytest.mark.parametrize(
    "message",
    [SslRequest(), GssEncRequest(), CancelRequest(7, b"key!"), Startup(3 << 16, (("user", "a"),))],
)
def test_first_messages_are_read_back(message: Message) -> None:
    assert read_first(write_first(message)[4:]) == message


def test_the_bytes_are_those_of_the_documentation() -> None:
    assert frame(Query("SELECT 1")) == b"Q\x00\x00\x00\x0dSELECT 1\x00"
    assert write_first(SslRequest()) == bytes.fromhex("0000000804d2162f")


@settings(max_examples=200)
@given(st.sampled_from([*"pQPBDECHSFdcfX", "?"]), st.binary(max_size=40))
def test_random_bytes_are_a_message_or_refused(letter: str, body: bytes) -> None:
    try:
        message = read_frontend(letter, body)
    except ProtocolViolation:
        assert letter == "?"
        return
    if not isinstance(message, Malformed):
        assert read_frontend(letter, write(message)) == message


@settings(max_examples=100)
@given(st.sampled_from([*BACKEND, "?"]), st.binary(max_size=40))
def test_random_bytes_of_a_server_too(letter: str, body: bytes) -> None:
    with contextlib.suppress(ProtocolViolation):
        assert write(read_backend(letter, body)) == body


@settings(max_examples=100)
@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda tail: b"\0\x03\0\0" + tail))
def test_random_bytes_as_a_first_message(body: bytes) -> None:
    with contextlib.suppress(ProtocolViolation):
        read_first(body)


def test_old_versions_are_refused_by_name() -> None:
    with pytest.raises(ProtocolViolation, match=r"unsupported frontend protocol 2\.0"):
        read_first(bytes.fromhex("00020000"))


def test_text_that_is_not_utf8_is_refused() -> None:
    found = read_frontend("Q", b"\xff\0")
    assert isinstance(found, Malformed)
    assert (found.of, found.error.code) == ("Q", "22021")


@pytest.mark.parametrize(
    "message", [Parse("", "", (0,) * 65_535), Bind("", "", (0,) * 65_535, (b"x",) * 65_535, (1,))]
)
def test_as_many_parameters_as_can_be_counted(message: Message) -> None:
    assert read_frontend(message.letter, write(message)) == message
    assert len(write(ParameterDescription((20,) * 65_535))) == 2 + 4 * 65_535

"""Compressed files: whole members count, one that is cut short does not exist yet."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.files import gzip_members
from reclock.connectors.files.gzip_members import Whole, decompressed, measured, rest_of
from reclock.errors import SourceStopped

members = st.lists(st.binary(max_size=40) | st.just(b"a\nb\n" * 50), max_size=4)


def whole_of(raw: bytes) -> Whole:
    return measured(io.BytesIO(raw), "f", None).whole


def packed(parts: list[bytes]) -> list[bytes]:
    return [gzip.compress(part, mtime=0) for part in parts]


@given(members, st.integers(0, 400), st.integers(0, 3))
def test_only_whole_members_count(parts: list[bytes], cut: int, padding: int) -> None:
    pieces = packed(parts)
    raw = b"".join(pieces)[:cut]
    whole = sized = 0
    while whole < len(pieces) and sized + len(pieces[whole]) <= len(raw):
        sized += len(pieces[whole])
        whole += 1
    is_whole = sized == len(raw)
    if is_whole:
        raw += b"\0" * padding  # what block devices leave
    content = b"".join(parts[:whole])
    found = whole_of(raw)
    assert (found.size, found.end) == (len(content), content.rfind(b"\n") + 1)
    assert found.raw == (len(raw) if is_whole else sized)
    assert rest_of(io.BytesIO(raw), found) == len(raw) - found.raw
    made = b"".join(decompressed(io.BytesIO(raw), "f"))
    assert made[: len(content)] == content


@given(members, members)
def test_measuring_goes_on_where_it_was(first: list[bytes], more: list[bytes]) -> None:
    begun = b"".join(packed(first))
    grown = begun + b"".join(packed(more))
    known = None
    for cut in range(0, len(grown), 7):
        known = measured(io.BytesIO(grown[:cut]), "f", known)
        assert known.whole == whole_of(grown[:cut])
    assert measured(io.BytesIO(grown), "f", known).whole == whole_of(grown)


def test_what_was_measured_is_not_decompressed_again() -> None:
    raw = gzip.compress(bytes(range(256)) * 100, compresslevel=0)
    known = measured(io.BytesIO(raw[:-5]), "f", None)
    middle = len(raw) // 2
    damaged = raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]
    assert measured(io.BytesIO(damaged), "f", known).whole == whole_of(raw)


@given(members, st.binary(min_size=1, max_size=30), st.binary(max_size=60))
def test_an_unfinished_member_may_be_begun_again(
    first: list[bytes], gone: bytes, instead: bytes
) -> None:
    begun = b"".join(packed(first))
    unfinished = gzip.compress(gone, mtime=0)[:-1]
    known = measured(io.BytesIO(begun + unfinished), "f", None)
    other = begun + gzip.compress(instead + b"\n", compresslevel=0, mtime=1)
    assert measured(io.BytesIO(other), "f", known).whole == whole_of(other)


def test_much_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_members, "_CHUNK", 1000)
    content = b"".join(b"%d\n" % n for n in range(5_000)) + b"0" * 500_000
    raw = gzip.compress(content)
    chunks = list(decompressed(io.BytesIO(raw), "f"))
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) <= 1000
    assert whole_of(raw).size == len(content)


@pytest.mark.parametrize("raw", [b"plain text", gzip.compress(b"x", mtime=0) + b"garbage"])
def test_what_is_not_gzip(raw: bytes) -> None:
    with pytest.raises(SourceStopped, match="not what gzip writes"):
        measured(io.BytesIO(raw), "f", None)


def test_a_damaged_member() -> None:
    raw = bytearray(gzip.compress(b"hello\n"))
    raw[-6] ^= 1
    with pytest.raises(SourceStopped, match="not what gzip writes"):
        measured(io.BytesIO(bytes(raw)), "f", None)


def test_nothing() -> None:
    assert whole_of(b"") == Whole(0, 0, 0)

"""Compressed files: whole members count, one that is cut short does not exist yet."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.files import gzip_members
from reclock.connectors.files.gzip_members import Whole, decompressed, measured
from reclock.errors import SourceStopped

members = st.lists(st.binary(max_size=40) | st.just(b"a\nb\n" * 50), max_size=4)


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
    if sized == len(raw):
        raw += b"\0" * padding  # what block devices leave
    content = b"".join(parts[:whole])
    found = measured(io.BytesIO(raw), "f", None)
    assert (found.size, found.end) == (len(content), content.rfind(b"\n") + 1)
    assert found.raw + found.rest == len(raw)
    made = b"".join(chunk for chunk, _ in decompressed(io.BytesIO(raw), 0, "f"))
    assert made[: len(content)] == content


@given(members, members)
def test_measuring_goes_on_where_it_was(first: list[bytes], more: list[bytes]) -> None:
    begun = b"".join(packed(first))
    grown = begun + b"".join(packed(more))
    known = measured(io.BytesIO(begun), "f", None)
    assert measured(io.BytesIO(grown), "f", known) == measured(io.BytesIO(grown), "f", None)
    hidden = io.BytesIO(b"?" * len(begun) + grown[len(begun) :])
    assert measured(hidden, "f", known) == measured(io.BytesIO(grown), "f", None)


def test_much_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_members, "_CHUNK", 1000)
    content = b"".join(b"%d\n" % n for n in range(5_000)) + b"0" * 500_000
    raw = gzip.compress(content)
    chunks = [chunk for chunk, _ in decompressed(io.BytesIO(raw), 0, "f")]
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) <= 1000
    assert measured(io.BytesIO(raw), "f", None).size == len(content)


@pytest.mark.parametrize("raw", [b"plain text", gzip.compress(b"x") + b"garbage"])
def test_what_is_not_gzip(raw: bytes) -> None:
    with pytest.raises(SourceStopped, match="not what gzip writes"):
        measured(io.BytesIO(raw), "f", None)


def test_a_damaged_member() -> None:
    raw = bytearray(gzip.compress(b"hello\n"))
    raw[-6] ^= 1
    with pytest.raises(SourceStopped, match="not what gzip writes"):
        measured(io.BytesIO(bytes(raw)), "f", None)


def test_nothing() -> None:
    assert measured(io.BytesIO(b""), "f", None) == Whole(0, 0, 0, 0)

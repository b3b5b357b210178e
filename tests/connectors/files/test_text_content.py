"""Files of lines: how far they go, and headers that must be those of the source."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.files import text as text_module
from reclock.connectors.files.content import Stretch
from reclock.connectors.files.text import Header, Text
from reclock.errors import InvalidValue, SourceStopped

contents = st.lists(st.sampled_from([b"a", b"\n", b"long line"]), max_size=30).map(b"".join)


def read(content: Text, raw: bytes, stretch: Stretch) -> list[tuple[int, bytes]]:
    return [
        (row["offset"], row["value"])
        for piece in content.pieces(io.BytesIO(raw), stretch)
        for row in piece.to_pylist()
    ]


@given(contents, st.lists(st.integers(0, 200), max_size=5), st.integers(1, 9))
def test_a_growing_file_is_measured_like_a_new_one(
    data: bytes, sizes: list[int], block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "_BEYOND", block)
        known = None
        for size in sorted({min(size, len(data)) for size in [*sizes, len(data)]}):
            known = Text().measure(io.BytesIO(data), "f", size, known)
            assert known.end == known.raw == data[:size].rfind(b"\n") + 1


def test_a_growing_file_is_not_looked_at_again() -> None:
    known = Text().measure(io.BytesIO(b"a\nbc"), "f", 4, None)
    known = Text().measure(io.BytesIO(b"\n\n\n\nd"), "f", 5, known)
    assert known.end == 2
    known = Text().measure(io.BytesIO(b"\n\n\n\n\ne\n"), "f", 7, known)
    assert known.end == 7


def test_a_line_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MAX_LINE", 10)
    assert Text().measure(io.BytesIO(b"a\n" + b"x" * 10), "f", 12, None).end == 2
    with pytest.raises(SourceStopped, match="too long"):
        Text().measure(io.BytesIO(b"a\n" + b"x" * 11), "f", 13, None)


@given(contents, st.lists(st.integers(0, 200), max_size=4), st.integers(1, 9), st.booleans())
def test_compressed_and_plain_files_read_alike(
    data: bytes, cuts: list[int], chunk: int, complete: bool
) -> None:
    end = len(data) if complete else data.rfind(b"\n") + 1
    bounds = sorted({0, end, *(cut for cut in cuts if cut < end)})
    packed = gzip.compress(data[:7]) + gzip.compress(data[7:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "_CHUNK", chunk)
        patch.setattr(text_module, "_BEYOND", chunk)
        for start, stop in pairwise(bounds):
            stretch = Stretch("f", start, stop, end if complete else None)
            zipped = read(Text(compression="gzip"), packed, stretch)
            assert zipped == read(Text(), data, stretch)
            named = read(Text(), packed, stretch._replace(name="f.gz"))
            assert named == zipped


def test_a_plain_file_may_be_called_gz() -> None:
    assert Text(compression="none").measure(io.BytesIO(b"a\n"), "f.gz", 2, None).end == 2
    with pytest.raises(InvalidValue, match="zip"):
        Text(compression="zip")


HEADER = Header(("id", "a name"))


@pytest.mark.parametrize(
    "line", [b"id,a name\n", b"id,a name\r\n", b'"id","a name"\n', b"\xef\xbb\xbfid,a name\n"]
)
def test_a_header_is_no_record(line: bytes) -> None:
    raw = line + b"1,x\n2,y\n"
    for cut in range(1, len(raw)):
        found = read(Text(HEADER), raw, Stretch("f", 0, cut))
        found += read(Text(HEADER), raw, Stretch("f", cut, len(raw)))
        assert found == [(len(line), b"1,x"), (len(line) + 4, b"2,y")]


def test_a_file_of_a_header_alone() -> None:
    assert read(Text(HEADER), b"id,a name\n", Stretch("f", 0, 10)) == []
    assert read(Text(HEADER), b"id,a name", Stretch("f", 0, 9, 9)) == []
    packed = gzip.compress(b"id,a name\n1,2\n")
    assert read(Text(HEADER), packed, Stretch("f.gz", 0, 14)) == [(10, b"1,2")]


@pytest.mark.parametrize(
    "line", [b"a name,id\n", b"id\n", b"id,a name,more\n", b"ID,a name\n", b"\n", b"\xff,a name\n"]
)
def test_another_header_is_refused(line: bytes) -> None:
    with pytest.raises(SourceStopped, match="another header") as caught:
        read(Text(HEADER), line + b"1,2\n", Stretch("f", 0, len(line)))
    assert "id, a name" in str(caught.value.detail)


def test_a_header_with_another_delimiter() -> None:
    content = Text(Header(("a", "b"), ";"))
    assert read(content, b"a;b\n1;2\n", Stretch("f", 0, 8)) == [(4, b"1;2")]


def test_complete_files() -> None:
    assert Text().measure_complete(io.BytesIO(b"a\nb"), "f", 3).end == 3
    packed = gzip.compress(b"a\nb")
    whole = Text().measure_complete(io.BytesIO(packed), "f.gz", len(packed))
    assert (whole.end, whole.raw) == (3, len(packed))
    for cut in (0, 5, len(packed) - 1):
        with pytest.raises(SourceStopped, match="not complete"):
            Text().measure_complete(io.BytesIO(packed[:cut]), "f.gz", cut)

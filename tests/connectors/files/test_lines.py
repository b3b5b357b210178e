"""Lines: any division of bytes into chunks, and of offsets into stretches, gives each once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reclock.connectors.files import lines as lines_module
from reclock.connectors.files.content import BATCH_ROWS, Stretch
from reclock.connectors.files.lines import SCHEMA, lines
from reclock.errors import SourceRegressed, SourceStopped

alphabet = st.sampled_from(
    [b"a", b"\n", b"\r", b"\r\n", b"\0", "ü".encode(), b"\xff", b",", b"xyz"]
)
contents = st.lists(alphabet, max_size=40).map(b"".join)
cuts = st.lists(st.integers(0, 120), max_size=5)


def model(data: bytes, *, complete: bool) -> list[tuple[int, bytes]]:
    """The definition, one byte after another."""
    found: list[tuple[int, bytes]] = []
    start, line = 0, b""
    for at in range(len(data)):
        byte = data[at : at + 1]
        if byte == b"\n":
            found.append((start, line[:-1] if line.endswith(b"\r") else line))
            start, line = at + 1, b""
        else:
            line += byte
    if line and complete:
        found.append((start, line))
    return found


def chunked(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(data), *(p for p in places if p < len(data))})
    return [data[a:b] for a, b in pairwise(bounds)]


def read(data: bytes, stretch: Stretch, chunks: list[int]) -> list[tuple[int, bytes]]:
    at = max(0, stretch.start - 1)
    found = []
    for batch in lines(iter(chunked(data[at:], chunks)), at, stretch):
        batch.validate(full=True)
        assert batch.schema == SCHEMA
        assert set(batch.column("part").to_pylist()) == {"f"}
        found += zip(
            batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True
        )
    return found


@given(contents, cuts, cuts, st.booleans())
@example(b"a\r\n\nb\r", [3], [], True)
@example(b"\r\n\r\n", [1, 2, 3], [1, 2, 3], False)
def test_any_division_has_each_line_once(
    data: bytes, chunks: list[int], stretches: list[int], complete: bool
) -> None:
    end = len(data) if complete else data.rfind(b"\n") + 1
    bounds = sorted({0, end, *(cut for cut in stretches if cut < end)})
    found = []
    for start, stop in pairwise(bounds):
        stretch = Stretch("f", start, stop, end if complete else None)
        found += read(data, stretch, chunks)
    assert found == model(data, complete=complete)


def test_many_lines_come_in_batches() -> None:
    data = b"x\n" * (BATCH_ROWS + 10)
    batches = list(lines(iter([data]), 0, Stretch("f", 0, len(data))))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, 10]
    assert batches[1].column("offset")[0].as_py() == 2 * BATCH_ROWS


def test_a_file_that_ends_too_early() -> None:
    with pytest.raises(SourceRegressed, match="truncated") as caught:
        read(b"ab\ncd", Stretch("f", 0, 9), [])
    assert "9" in str(caught.value.detail)
    assert "5" in str(caught.value.detail)


def test_a_line_that_was_whole_and_is_not() -> None:
    with pytest.raises(SourceRegressed, match="changed"):
        read(b"ab\ncd", Stretch("f", 0, 5), [])


@pytest.mark.parametrize("data", [b"a\n" + b"x" * 11 + b"\n", b"a\n" + b"x" * 30])
@pytest.mark.parametrize("chunks", [[], [3, 5, 7, 9, 11, 13]])
def test_a_line_that_is_too_long(
    monkeypatch: pytest.MonkeyPatch, data: bytes, chunks: list[int]
) -> None:
    monkeypatch.setattr(lines_module, "MAX_LINE", 10)
    assert read(b"x" * 10 + b"\n", Stretch("f", 0, 11), chunks) == [(0, b"x" * 10)]
    with pytest.raises(SourceStopped, match="too long") as caught:
        read(data, Stretch("f", 0, len(data), len(data)), chunks)
    assert "offset 2" in str(caught.value.detail)

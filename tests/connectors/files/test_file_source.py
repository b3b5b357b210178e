"""Files as sources: each whole line once, however it came; never other bytes than were bound."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import pickle
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.files.content import BATCH_BYTES, BATCH_ROWS
from reclock.connectors.files.source import DirectorySource, FileReader, FileSource
from reclock.connectors.files.text import Header, Text
from reclock.errors import (
    InvalidValue,
    NewerFormat,
    SourceRegressed,
    SourceStopped,
    SourceUnavailable,
)
from reclock.remap.batch import Range
from reclock.time.position import FilePosition, offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.time.antichain import Antichain

TEXT = Text()
ORIGIN = FilePosition.frontier({})


def spans(before: Antichain[FilePosition], after: Antichain[FilePosition]) -> list[Range]:
    begun = offsets_of(before)
    return [
        Range(part, begun.get(part, 0), stop, Timestamp(0))
        for part, stop in offsets_of(after).items()
    ]


def rows(source: FileSource | FileReader, ranges: list[Range]) -> list[tuple[Any, ...]]:
    found = []
    reader = source if isinstance(source, FileReader) else source.reader
    for batch in reader.read(ranges):
        assert batch.schema == reader.schema
        found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def everything(source: FileSource, bound: Antichain[FilePosition] = ORIGIN) -> list[bytes]:
    return [value for _, _, value in rows(source, spans(bound, source.probe(bound)))]


def expected_lines(data: bytes) -> list[tuple[int, bytes]]:
    whole = data[: data.rfind(b"\n") + 1]
    found, at = [], 0
    for line in whole.split(b"\n")[:-1]:
        found.append((at, line.removesuffix(b"\r")))
        at += len(line) + 1
    return found


pieces = st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b"\0", "Größe 🙂".encode(), b"\xff", b"xy\nz"]),
    max_size=8,
).map(b"".join)
names = st.sampled_from(["a", "b", "ü.csv"])


@settings(deadline=None)
@given(st.lists(st.tuples(names, pieces, st.booleans(), st.booleans()), max_size=12), st.data())
def test_every_whole_line_once(
    steps: list[tuple[str, bytes, bool, bool]], data: st.DataObject
) -> None:
    """Files grow by any bytes; probes, restarts and readings that stop anywhere in between."""
    with tempfile.TemporaryDirectory() as path:
        source, bound = DirectorySource.create(path, TEXT)
        facts = source.facts
        written: dict[str, bytes] = {}
        found: list[tuple[str, int, bytes]] = []
        for name, more, restarts, reads_all in steps:
            with open(os.path.join(path, name), "ab") as file:
                file.write(more)
            written[name] = written.get(name, b"") + more
            if restarts:
                source = DirectorySource.open(TEXT, json.loads(json.dumps(facts)))
            upstream = source.probe(bound)
            assert bound.precedes(upstream)
            ends = offsets_of(upstream)
            if not reads_all:  # bind only some of it, at any byte
                begun = offsets_of(bound)
                ends = {n: data.draw(st.integers(begun.get(n, 0), end)) for n, end in ends.items()}
                upstream = FilePosition.frontier(ends)
            ranges = spans(bound, upstream)
            some = rows(source, ranges)
            assert some == rows(pickle.loads(pickle.dumps(source.reader)), ranges), "and again"
            source.verify()
            found += some
            bound = upstream
        last = source.probe(bound)
        found += rows(source, spans(bound, last))
        for name, content in written.items():
            own = [(offset, value) for part, offset, value in found if part == name]
            assert own == expected_lines(content)
        whole = rows(source, spans(ORIGIN, last))
        assert sorted(whole) == sorted(found), "a replay has the same"


def test_one_file_is_tailed(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"one\n\ntw")
    source, origin = FileSource.create(str(path), TEXT)
    bound = source.probe(origin)
    assert bound == FilePosition.frontier({"log.txt": 5})
    assert rows(source, spans(origin, bound)) == [("log.txt", 0, b"one"), ("log.txt", 4, b"")]
    with path.open("ab") as file:
        file.write(b"o\nthree")
    later = source.probe(bound)
    assert offsets_of(later) == {"log.txt": 9}
    assert rows(source, spans(bound, later)) == [("log.txt", 5, b"two")]
    assert source.probe(later) == later, "the rest waits"


def test_a_file_is_a_part_from_its_first_line_on(tmp_path: Path) -> None:
    source, origin = DirectorySource.create(str(tmp_path), TEXT)
    assert source.probe(origin) == origin
    (tmp_path / "a").write_bytes(b"not yet a line")
    assert source.probe(origin) == origin
    (tmp_path / "a").unlink()
    source.verify()
    assert source.probe(origin) == origin, "nobody has seen it"
    (tmp_path / "b").write_bytes(b"x\n")
    bound = source.probe(origin)
    (tmp_path / "a").write_bytes(b"y\n")
    later = source.probe(bound)
    assert bound.strictly_precedes(later)
    assert offsets_of(later) == {"a": 2, "b": 2}


def test_a_bound_may_name_files_that_have_not_begun(tmp_path: Path) -> None:
    source, _ = DirectorySource.create(str(tmp_path), TEXT)
    bound = FilePosition.frontier({"a": 0})
    assert source.probe(bound) == bound
    (tmp_path / "a").write_bytes(b"x\n")
    assert offsets_of(source.probe(bound)) == {"a": 2}


def grown(tmp_path: Path, data: bytes = b"one\ntwo\n") -> tuple[Path, DirectorySource, Any]:
    path = tmp_path / "a"
    path.write_bytes(data)
    source, origin = DirectorySource.create(str(tmp_path), TEXT)
    return path, source, source.probe(origin)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path, source, bound = grown(tmp_path)
    source.probe(bound)
    path.unlink()
    with pytest.raises(SourceRegressed, match="gone") as caught:
        source.verify()
    with pytest.raises(SourceRegressed, match="gone"):
        source.probe(bound)
    fresh = DirectorySource.open(TEXT, source.facts)
    with pytest.raises(SourceRegressed, match='"a" is gone') as caught:
        fresh.probe(bound)
    assert "below 8" in str(caught.value.detail)
    with pytest.raises(SourceRegressed, match="gone"):
        rows(source, [Range("a", 4, 8, Timestamp(0))])
    shutil.rmtree(tmp_path)
    with pytest.raises(SourceRegressed, match="gone"):
        fresh.probe(bound)


def test_a_file_that_shrinks(tmp_path: Path) -> None:
    path, source, bound = grown(tmp_path)
    source.probe(bound)
    path.write_bytes(b"one\n")
    for step in (source.verify, lambda: source.probe(bound)):
        with pytest.raises(SourceRegressed, match='"a" was truncated') as caught:
            step()
        assert "8" in str(caught.value.detail)
        assert "4" in str(caught.value.detail)
    fresh = DirectorySource.open(TEXT, source.facts)
    with pytest.raises(SourceRegressed, match="truncated") as caught:
        fresh.probe(bound)
    assert "ends at 4" in str(caught.value.detail)
    with pytest.raises(SourceRegressed, match="truncated"):
        rows(source, [Range("a", 0, 8, Timestamp(0))])


def test_a_bound_line_that_lost_its_end(tmp_path: Path) -> None:
    path, source, bound = grown(tmp_path)
    path.write_bytes(b"one\ntwo, and no end")
    with pytest.raises(SourceRegressed, match="truncated"):
        DirectorySource.open(TEXT, source.facts).probe(bound)


@pytest.mark.parametrize("data", [b"oNe\ntwo\n", b"one\ntwO\n", b"new\nfile\nand\nlonger\n"])
def test_a_file_that_was_changed(tmp_path: Path, data: bytes) -> None:
    path, source, bound = grown(tmp_path)
    source.probe(bound)
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    for step in (source.verify, lambda: source.probe(bound)):
        with pytest.raises(SourceRegressed, match='"a" was changed') as caught:
            step()
        assert "below offset 8" in str(caught.value.detail)


def test_a_file_that_was_replaced_by_itself_and_more(tmp_path: Path) -> None:
    path, source, bound = grown(tmp_path)
    source.probe(bound)
    other = tmp_path / "other.tmp"
    other.write_bytes(path.read_bytes() + b"three\n")
    other.rename(path)
    source.verify()
    later = source.probe(bound)
    assert rows(source, spans(bound, later)) == [("a", 8, b"three")]


@pytest.mark.parametrize("at", [0, 4095, 50_000 - 4096, 49_998])
def test_both_ends_of_long_files_are_watched(tmp_path: Path, at: int) -> None:
    data = bytearray(b"x" * 49_999 + b"\n")
    path, source, bound = grown(tmp_path, bytes(data))
    source.probe(bound)
    data[at] = ord("y")
    path.write_bytes(bytes(data) + b"more\n")
    with pytest.raises(SourceRegressed, match="changed"):
        source.probe(bound)


def test_a_file_of_which_nothing_is_bound_may_change(tmp_path: Path) -> None:
    path, source, _ = grown(tmp_path)
    path.write_bytes(b"another\n")
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceUnavailable, match="changed"):
        source.verify()
    assert everything(source) == [b"another"]
    source.verify()
    path.unlink()
    with pytest.raises(SourceUnavailable):
        source.verify()
    with pytest.raises(SourceUnavailable):
        rows(source, [Range("a", 0, 8, Timestamp(0))])
    assert source.probe(ORIGIN) == ORIGIN


def test_a_directory_that_is_not_there_any_more(tmp_path: Path) -> None:
    path = tmp_path / "inner"
    path.mkdir()
    source, origin = DirectorySource.create(str(path), TEXT)
    path.rmdir()
    with pytest.raises(SourceUnavailable, match="does not exist"):
        source.probe(origin)
    path.mkdir()
    assert source.probe(origin) == origin


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path, source, bound = grown(tmp_path)
    path.chmod(0)
    fresh = DirectorySource.open(TEXT, source.facts)
    with pytest.raises(SourceUnavailable) as caught:
        fresh.probe(bound)
    assert caught.value.code == "42501"


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x\n")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    source, origin = FileSource.create(str(tmp_path / "link"), TEXT)
    assert offsets_of(source.probe(origin)) == {"link": 2}
    assert everything(source) == [b"x"]


def test_wrong_paths(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="does not exist"):
        FileSource.create(str(tmp_path / "nothing"), TEXT)
    with pytest.raises(InvalidValue, match="is a directory"):
        FileSource.create(str(tmp_path), TEXT)
    (tmp_path / "f").touch()
    with pytest.raises(InvalidValue, match="is not a directory"):
        DirectorySource.create(str(tmp_path / "f"), TEXT)


def test_a_source_is_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_bytes(b"x\n")
    source, _ = FileSource.create("f", TEXT)
    monkeypatch.chdir("/")
    assert everything(FileSource.open(TEXT, source.facts)) == [b"x"]
    with pytest.raises(NewerFormat):
        FileSource.open(TEXT, {**source.facts, "version": 3})


# Without tailing.


def test_complete_files_are_what_they_were_when_created(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo")
    (tmp_path / "b").write_bytes(b"")
    source, origin = DirectorySource.create(str(tmp_path), TEXT, tail=False)
    facts = json.loads(json.dumps(source.facts))
    (tmp_path / "a").write_bytes(b"one\ntwo, and more\nthree\n")
    (tmp_path / "b").write_bytes(b"late\n")
    (tmp_path / "c").write_bytes(b"new\n")
    for each in (source, DirectorySource.open(TEXT, facts)):
        bound = each.probe(origin)
        assert offsets_of(bound) == {"a": 7}
        assert rows(each, spans(origin, bound)) == [("a", 0, b"one"), ("a", 4, b"two")]
        assert each.probe(bound) == bound
        each.verify()
    (tmp_path / "a").write_bytes(b"oNe\ntwo")
    for each in (source, DirectorySource.open(TEXT, facts)):
        for step in (each.verify, lambda: each.probe(bound)):  # noqa: B023 - called at once
            with pytest.raises(SourceRegressed, match="changed"):
                step()
    (tmp_path / "a").unlink()
    with pytest.raises(SourceRegressed, match="gone"):
        source.probe(bound)


@settings(deadline=None)
@given(pieces, st.lists(st.integers(0, 60), max_size=4), st.booleans())
def test_the_last_line_of_a_complete_file_needs_no_newline(
    data: bytes, cuts: list[int], packed: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "f.gz" if packed else "f")
        path.write_bytes(gzip.compress(data) if packed else data)
        source, origin = FileSource.create(str(path), TEXT, tail=False)
        with path.open("ab") as file:
            file.write(gzip.compress(b"more") if packed else b"more")
        bound = source.probe(origin)
        assert offsets_of(bound) == ({path.name: len(data)} if data else {})
        end = len(data)
        bounds = sorted({0, end, *(cut for cut in cuts if cut < end)})
        found = [
            value
            for start, stop in itertools.pairwise(bounds)
            for _, _, value in rows(source, [Range(path.name, start, stop, Timestamp(0))])
        ]
        rest = data[data.rfind(b"\n") + 1 :]
        assert found == [line for _, line in expected_lines(data)] + ([rest] if rest else [])


def test_an_empty_directory_stays_empty(tmp_path: Path) -> None:
    source, origin = DirectorySource.create(str(tmp_path), TEXT, tail=False)
    source = DirectorySource.open(TEXT, source.facts)
    (tmp_path / "a").write_bytes(b"x\n")
    assert source.probe(origin) == origin


# Compressed files.


def test_a_compressed_file_is_read_when_it_is_whole(tmp_path: Path) -> None:
    data = b"".join(b"line %d\n" % n for n in range(1000))
    packed = gzip.compress(data)
    path = tmp_path / "a.gz"
    source, origin = DirectorySource.create(str(tmp_path), TEXT)
    for cut in (0, 1, 10, len(packed) // 2, len(packed) - 1):
        path.write_bytes(packed[:cut])
        assert source.probe(origin) == origin, "it is still being written"
    path.write_bytes(packed)
    bound = source.probe(origin)
    assert offsets_of(bound) == {"a.gz": len(data)}
    assert [v for _, _, v in rows(source, spans(origin, bound))] == data.split(b"\n")[:-1]
    with path.open("ab") as file:
        file.write(gzip.compress(b"more\nand mo")[:-1])
    assert source.probe(bound) == bound
    with path.open("ab") as file:
        file.write(gzip.compress(b"more\nand mo")[-1:])
    later = source.probe(bound)
    assert rows(source, spans(bound, later)) == [("a.gz", len(data), b"more")]
    assert DirectorySource.open(TEXT, source.facts).probe(later) == later
    path.write_bytes(gzip.compress(data + b"other\n"))
    with pytest.raises(SourceRegressed):
        source.probe(later)


def test_a_damaged_compressed_file_stops_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"this is no gzip\n")
    source, origin = DirectorySource.create(str(tmp_path), TEXT)
    with pytest.raises(SourceStopped, match=r'"a\.gz" is not what gzip writes'):
        source.probe(origin)


# Many, large, headers.


def test_small_files_share_batches(tmp_path: Path) -> None:
    for n in range(200):
        (tmp_path / f"{n:03}").write_bytes(b"%d\n" % n)
    source, origin = DirectorySource.create(str(tmp_path), TEXT)
    (batch,) = source.reader.read(spans(origin, source.probe(origin)))
    assert batch.column("value").to_pylist() == [b"%d" % n for n in range(200)]


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"short\n" * 200_000)
        for _ in range(30):
            file.write(b"x" * 1_000_000 + b"\n")
        file.write(b"y" * (20 << 20) + b"\n")
        file.write(b"short\n" * 10)
    source, origin = FileSource.create(str(path), TEXT)
    count = 0
    for batch in source.reader.read(spans(origin, source.probe(origin))):
        assert batch.num_rows <= BATCH_ROWS
        lengths = [len(value) for value in batch.column("value").to_pylist()]
        assert sum(lengths) <= BATCH_BYTES or max(lengths) == 20 << 20
        assert sum(lengths) <= (20 << 20) + BATCH_BYTES
        count += batch.num_rows
    assert count == 200_041


def test_ranges_are_read_by_going_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456\n" * 1_000_000)
    source, origin = FileSource.create(str(path), TEXT)
    end = offsets_of(source.probe(origin))["f"]
    looked = []

    def counting(file: Any, at: int, stop: int) -> Any:
        for chunk in plain(file, at, stop):
            looked.append(len(chunk))
            yield chunk

    from reclock.connectors.files import text  # noqa: PLC0415 - only to be spied on

    plain = text._plain
    monkeypatch.setattr(text, "_plain", counting)
    assert rows(source, [Range("f", end - 8, end, Timestamp(0))]) == [("f", end - 8, b"0123456")]
    assert sum(looked) == 9


def test_headers(tmp_path: Path) -> None:
    content = Text(Header(("a", "b")))
    (tmp_path / "1.csv").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"a,b\r\n3,4\r\n"))
    source, origin = DirectorySource.create(str(tmp_path), content)
    bound = source.probe(origin)
    assert rows(source, spans(origin, bound)) == [("1.csv", 4, b"1,2"), ("2.csv.gz", 5, b"3,4")]
    (tmp_path / "3.csv").write_bytes(b"b,a\n")
    later = source.probe(bound)
    with pytest.raises(SourceStopped, match=r'"3\.csv" has another header'):
        rows(source, spans(bound, later))


def test_a_reading_may_be_given_up(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"short\n" * 200_000)
    source, origin = FileSource.create(str(tmp_path / "f"), TEXT)
    batches = source.reader.read(spans(origin, source.probe(origin)))
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    assert len(everything(source)) == 200_000


def test_a_file_is_read_while_it_is_written(tmp_path: Path) -> None:
    """A writer that never waits, and flushes in the middle of lines."""
    path = tmp_path / "f"
    path.touch()
    count = 20_000

    def write() -> None:
        with path.open("ab", buffering=997) as out:
            for n in range(count):
                out.write(b"line %d\n" % n)

    source, bound = FileSource.create(str(path), TEXT)
    writer = threading.Thread(target=write)
    writer.start()
    found: list[bytes] = []
    while len(found) < count:
        alive = writer.is_alive()
        upstream = source.probe(bound)
        found += [value for _, _, value in rows(source, spans(bound, upstream))]
        source.verify()
        bound = upstream
        assert alive or len(found) == count, "all of it was there"
    writer.join()
    assert found == [b"line %d" % n for n in range(count)]

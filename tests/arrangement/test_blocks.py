from __future__ import annotations

import os

import pyarrow as pa
import pytest

from reclock.arrangement.blocks import Blocks
from reclock.arrangement.file import Place


def added(blocks, name, offset, data):
    return blocks.add(name, Place(offset, len(data)), [pa.py_buffer(data)])


def test_a_copy_is_found_by_what_it_is_of(tmp_path):
    blocks = Blocks(tmp_path / "new", 1_000)
    assert blocks.piece("f", Place(3, 5)) is None
    made = blocks.add("f", Place(3, 5), [pa.py_buffer(b"he"), pa.py_buffer(b"llo")])
    assert made.to_pybytes() == b"hello"
    assert blocks.piece("f", Place(3, 5)).to_pybytes() == b"hello"
    assert blocks.piece("f", Place(3, 4)) is None
    assert blocks.piece("g", Place(3, 5)) is None
    assert blocks.drop("f", Place(3, 5))
    assert not blocks.drop("f", Place(3, 5))
    assert made.to_pybytes() == b"hello", "maps stay valid"


def test_what_was_used_longest_ago_goes(tmp_path):
    blocks = Blocks(tmp_path, 40)
    for offset in range(4):
        added(blocks, "f", offset, b"0123456789")
        os.utime(tmp_path / f"f@{offset}+10", ns=(offset, offset))
    assert blocks.piece("f", Place(0, 10)) is not None
    added(blocks, "f", 4, b"0123456789")
    assert sorted(os.listdir(tmp_path)) == ["f@0+10", "f@2+10", "f@3+10", "f@4+10"]


def test_files_being_written_are_no_copies(tmp_path):
    (tmp_path / ".t~1.tmp").write_bytes(b"0" * 100)
    (tmp_path / ".t~old.tmp").write_bytes(b"0" * 100)
    os.utime(tmp_path / ".t~old.tmp", ns=(0, 0))
    blocks = Blocks(tmp_path, 40)
    added(blocks, "f", 0, b"0123456789")
    assert sorted(os.listdir(tmp_path)) == [".t~1.tmp", "f@0+10"]


def test_a_finished_file_becomes_a_copy_unless_it_is_large(tmp_path):
    blocks = Blocks(tmp_path, 1_600)
    for name, size in (("small", 100), ("large", 101)):
        (tmp_path / ".x.tmp").write_bytes(b"0" * size)
        blocks.adopt(tmp_path / ".x.tmp", name)
    assert os.listdir(tmp_path) == ["small"]
    assert len(blocks.mapped("small")) == 100


@pytest.mark.parametrize("trouble", ["a file", "gone"])
def test_without_a_directory_bytes_stay_in_memory(tmp_path, trouble):
    blocks = Blocks(tmp_path / "cache", 1_000)
    added(blocks, "f", 0, b"first")
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    (tmp_path / "cache").rmdir()
    if trouble == "a file":
        (tmp_path / "cache").write_text("in the way")
    assert blocks.piece("f", Place(0, 5)) is None
    assert added(blocks, "f", 9, b"again").to_pybytes() == b"again"
    assert (blocks.piece("f", Place(9, 5)) is None) == (trouble == "a file")


def test_a_full_disk_is_no_error(tmp_path, monkeypatch):
    blocks = Blocks(tmp_path, 1_000)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reclock.arrangement.blocks.map_file", full)
    parts = [pa.py_buffer(b"by"), pa.py_buffer(b"tes")]
    assert blocks.add("f", Place(0, 5), parts).to_pybytes() == b"bytes"
    assert os.listdir(tmp_path) == []

"""Which files there are, and paths that cannot be what they are said to be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from reclock.connectors.files.listing import Directory, OneFile
from reclock.errors import InvalidValue, SourceUnavailable

if TYPE_CHECKING:
    from pathlib import Path


def test_files_that_are_data(tmp_path: Path) -> None:
    ignored = [".hidden", "_SUCCESS", "_metadata", "a.csv.tmp", ".a.csv.crc", "b.crc"]
    for name in [*ignored, "b.csv", "a.csv", "ü.gz"]:
        (tmp_path / name).touch()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "c.csv").touch()
    (tmp_path / "link").symlink_to(tmp_path / "inner" / "c.csv")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    listing = Directory(str(tmp_path))
    listing.check()
    assert listing.names() == ["a.csv", "b.csv", "link", "ü.gz"]
    assert listing.path_of("a.csv") == str(tmp_path / "a.csv")


def test_one_file(tmp_path: Path) -> None:
    path = tmp_path / "_log.tmp"
    path.touch()
    listing = OneFile(str(path))
    listing.check()
    assert listing.names() == ["_log.tmp"], "who names a file means it"
    path.unlink()
    assert listing.names() == []


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    assert Directory(str(tmp_path / "gone")).names() == []


@pytest.mark.parametrize("kind", [OneFile, Directory])
def test_a_path_that_does_not_exist(tmp_path: Path, kind: type[OneFile | Directory]) -> None:
    with pytest.raises(SourceUnavailable, match="does not exist") as caught:
        kind(str(tmp_path / "nothing")).check()
    assert caught.value.code == "58P01"


def test_one_for_the_other(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="is a directory") as caught:
        OneFile(str(tmp_path)).check()
    assert "FROM DIRECTORY" in str(caught.value.hint)
    (tmp_path / "f").touch()
    with pytest.raises(InvalidValue, match="is not a directory") as caught:
        Directory(str(tmp_path / "f")).check()
    assert "FROM FILE" in str(caught.value.hint)


def test_a_pipe_cannot_be_read_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidValue, match="regular"):
        OneFile(str(tmp_path / "pipe")).check()
    assert Directory(str(tmp_path)).names() == []


def test_a_name_that_is_not_text(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"\xff.csv")).touch()
    except OSError:
        pytest.skip("this file system has no such names")
    with pytest.raises(SourceUnavailable, match="not UTF-8"):
        Directory(str(tmp_path)).names()

"""Files stay under their root, also when links are made later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.connectors.files.root import is_within, no_link, real_path
from reclock.connectors.files.source import DirectorySource, FileSource
from reclock.connectors.files.text import Text
from reclock.errors import NewerFormat, SourceUnavailable
from reclock.time.position import FilePosition

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = FilePosition.frontier({})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "secret").write_text("secret\n")
    (made / "a.txt").write_text("a\n")
    return made


def test_what_is_within(root: Path) -> None:
    (root / "out").symlink_to(root.parent / "root2")
    (root / "in").symlink_to(root / "a.txt")
    known = {
        ".": True, "a.txt": True, "none": True, "in": True, "x/../a.txt": True,
        "out": False, "out/secret": False, "../root2/secret": False, "..": False, "/": False,
    }  # fmt: skip
    assert {path: is_within(str(root / path), str(root)) for path in known} == known


def test_without_a_root_paths_are_as_they_are() -> None:
    assert real_path("../x", None) == "../x"


def test_a_link_is_not_opened(root: Path) -> None:
    (root / "link").symlink_to(root / "a.txt")
    with pytest.raises(OSError, match="symbolic"):
        open(root / "link", "rb", opener=no_link)  # noqa: SIM115 - it does not open


def test_a_file_that_becomes_a_link(root: Path) -> None:
    source, _ = FileSource.create(str(root / "a.txt"), Text(), root=str(root))
    assert source.facts["version"] == 2
    again = FileSource.open(Text(), source.facts)
    assert again.probe(ORIGIN) == FilePosition.frontier({"a.txt": 2})
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(root.parent / "root2" / "secret")
    for each in (again, FileSource.open(Text(), source.facts)):
        with pytest.raises(SourceUnavailable, match="leads out") as caught:
            each.probe(ORIGIN)
        assert caught.value.code == "42501"


def test_a_link_in_a_directory(root: Path) -> None:
    (root / "b.txt").symlink_to(root / "a.txt")
    source, _ = DirectorySource.create(str(root), Text(), root=str(root))
    assert source.probe(ORIGIN) == FilePosition.frontier({"a.txt": 2, "b.txt": 2})
    (root / "c.txt").symlink_to(root.parent / "root2" / "secret")
    with pytest.raises(SourceUnavailable, match="leads out"):
        source.probe(ORIGIN)
    free, _ = DirectorySource.create(str(root), Text())
    assert free.facts["version"] == 1
    assert free.probe(ORIGIN) == FilePosition.frontier({"a.txt": 2, "b.txt": 2, "c.txt": 7})


def test_facts_of_a_later_version(root: Path) -> None:
    source, _ = FileSource.create(str(root / "a.txt"), Text())
    with pytest.raises(NewerFormat):
        FileSource.open(Text(), {**source.facts, "version": 3})

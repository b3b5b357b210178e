from __future__ import annotations

from pathlib import Path

import pytest

from reclock.arrangement import nearby
from reclock.arrangement.nearby import DEFAULT_BYTES, Nearby, parse_bytes
from reclock.errors import InvalidValue


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("RECLOCK_CACHE_DIR", "RECLOCK_CACHE_BYTES", "SPARK_LOCAL_DIRS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """What another machine sent, where the same path means another directory."""
    monkeypatch.setattr(nearby, "_machine", lambda: "another")
    made = Nearby.own(tmp_path / "state" / "cache", "db1").sent("db1")
    monkeypatch.undo()
    return made


def test_a_process_has_its_own(tmp_path, monkeypatch):
    assert Nearby.own(tmp_path, "db1") == Nearby(tmp_path, DEFAULT_BYTES)
    monkeypatch.setenv("RECLOCK_CACHE_DIR", str(tmp_path / "fast"))
    monkeypatch.setenv("RECLOCK_CACHE_BYTES", "64 MiB")
    assert Nearby.own(tmp_path, "db1") == Nearby(tmp_path / "fast" / "db1", 64 << 20)


def test_processes_of_one_machine_share(tmp_path):
    made = Nearby.own(tmp_path / "state" / "cache", "db1")
    assert Nearby.received(*made.sent("db1")) == made


def test_another_machine_uses_what_spark_gives_it(sent, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/a,{tmp_path}/b")
    assert Nearby.received(*sent) == Nearby(tmp_path / "a" / "reclock" / "db1", DEFAULT_BYTES)


def test_or_what_it_is_told(sent, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/a")
    monkeypatch.setenv("RECLOCK_CACHE_DIR", "here")
    monkeypatch.setenv("RECLOCK_CACHE_BYTES", "1g")
    monkeypatch.chdir(tmp_path)
    assert Nearby.received(*sent) == Nearby(tmp_path / "here" / "db1", 1 << 30)


def test_or_the_cache_of_the_user(sent):
    made = Nearby.received(*sent)
    assert made.directory.parts[-2:] == ("store", "db1")
    assert made.directory != Path(sent[0])


def test_another_directory_at_the_same_path_is_not_shared(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "a"))
    made = Nearby.own(tmp_path / "cache", "db1")
    sent = made.sent("db1")
    (tmp_path / "cache").rename(tmp_path / "away")
    assert Nearby.received(*sent).directory == tmp_path / "a" / "reclock" / "db1"
    (tmp_path / "cache").mkdir()
    assert Nearby.received(*sent).directory == tmp_path / "a" / "reclock" / "db1"


@pytest.mark.parametrize("text", ["", "much", "10 x", "-1"])
def test_a_size_that_is_none(text):
    with pytest.raises(InvalidValue, match="invalid size"):
        parse_bytes(text)

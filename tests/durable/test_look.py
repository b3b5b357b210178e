"""A copy of a state that somebody else is using."""

from __future__ import annotations

import pytest

from reclock.durable.look import copy_state
from reclock.durable.sqlite import open_sqlite
from reclock.errors import StorageError


def test_a_copy_is_whole_while_the_owner_goes_on(tmp_path):
    state, copy = tmp_path / "state", tmp_path / "copy"
    copy.mkdir()
    owner = open_sqlite(state)
    (state / "segments").mkdir()
    (state / "segments" / "a").write_bytes(b"run")
    copy_state(state, copy)
    (state / "segments" / "a").unlink()
    assert (copy / "segments" / "a").read_bytes() == b"run"
    other = open_sqlite(copy)  # the owner of the state does not own the copy
    other.close()
    owner.close()


def test_a_directory_without_a_state_is_told(tmp_path):
    with pytest.raises(StorageError, match="there is no state in"):
        copy_state(tmp_path, tmp_path)


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "reclock.db").write_bytes(b"not a database, but long enough to look like one" * 9)
    copy = tmp_path / "copy"
    copy.mkdir()
    with pytest.raises(StorageError, match="cannot read the state"):
        copy_state(tmp_path, copy)

"""Who says that it is going to serve a state directory, and until when."""

from __future__ import annotations

import os
import subprocess
import sys

from reclock.durable.ownership import owner_name
from reclock.server.announcement import NAME, announced, announcer

ANNOUNCE = """
import sys, time
from pathlib import Path
from reclock.server.announcement import announced
with announced(Path(sys.argv[1])):
    print("announced", flush=True)
    time.sleep(60)
"""


def test_it_is_announced_until_the_end_of_the_block(tmp_path):
    state = tmp_path / "new" / "state"
    assert announcer(state) is None
    with announced(state):
        assert announcer(state) == owner_name()
        with announced(state):  # the lock of the state says which of them it is
            assert announcer(state) == owner_name()
        assert announcer(state) == owner_name()
    assert announcer(state) is None
    assert (state / NAME).exists()


def test_it_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", ANNOUNCE, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "announced\n"
        assert str(process.pid) in (announcer(tmp_path) or "")
        process.kill()
    assert announcer(tmp_path) is None


def test_a_file_that_cannot_be_read_names_nobody(tmp_path):
    with announced(tmp_path):
        (tmp_path / NAME).write_text("?")
        assert announcer(tmp_path) == "another process"


def test_a_directory_that_cannot_be_made_is_no_matter(tmp_path):
    (tmp_path / "file").write_text("")
    with announced(tmp_path / "file" / "state"):
        assert announcer(tmp_path / "file" / "state") is None
    assert os.listdir(tmp_path) == ["file"]

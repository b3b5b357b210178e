from __future__ import annotations

import os
import signal

from children import Child
from reclock.failpoints import EXIT_STATUS


def test_a_child_is_a_process_of_its_own_that_has_loaded_everything():
    program = "import os, sys; pipe.send((os.getpid(), 'polars' in sys.modules, what))"
    children = [Child(program, what=what) for what in ("a", "b")]
    told = [child.pipe.recv() for child in children]
    assert told == [(child.pid, True, what) for child, what in zip(children, "ab", strict=True)]
    assert os.getpid() not in (child.pid for child in children)
    assert [child.ended() for child in children] == [0, 0]


def test_its_status_says_how_it_ended():
    last = Child(f"import os; pipe.send(1); pipe.send(2); os._exit({EXIT_STATUS})")
    assert last.said() == [1, 2]
    assert last.ended() == EXIT_STATUS
    waiting = Child("pipe.recv()")
    assert waiting.alive
    assert waiting.kill() == -signal.SIGKILL


def test_it_ends_with_the_one_who_started_it():
    waiting = Child("pipe.recv()")
    waiting.pipe.close()
    assert waiting.ended() == 1, "nobody is there any more"

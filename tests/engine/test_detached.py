"""A statement that waits for its work is left at once, whichever thread a signal comes to."""

from __future__ import annotations

import signal
import threading
from time import monotonic

import pytest

from reclock.engine.detached import apart
from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted


@pytest.fixture
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_that_comes_to_another_thread_ends_the_wait(ctrl_c):
    """The kernel may choose any thread; the one that waits must hear of it all the same."""
    left, over, told = [], threading.Event(), []

    def work(stop):
        over.wait(0.3)  # until the other one waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        over.wait(5)
        try:
            stop.check()
        except Interrupted as error:
            told.append(error)
        left.append(True)

    begun = monotonic()
    with pytest.raises(KeyboardInterrupt):
        apart(Interrupt(), work)
    assert monotonic() - begun < 3
    over.set()
    while not left:
        threading.Event().wait(0.01)
    assert told

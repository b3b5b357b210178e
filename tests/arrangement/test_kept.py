from __future__ import annotations

import gc

from reclock.arrangement.kept import Kept


class Holder:
    def __init__(self):
        self.released = []

    def release(self, index):
        self.released.append(index)


def test_what_was_used_longest_ago_is_let_go():
    kept, one, other = Kept(100), Holder(), Holder()
    for index in range(3):
        kept.used(one, index, 30)
    kept.used(one, 0, 30)
    kept.used(other, 0, 30)
    assert (one.released, other.released, kept.bytes) == ([1], [], 90)


def test_the_last_one_stays_whatever_its_size():
    kept, one = Kept(0), Holder()
    kept.used(one, 0, 1_000)
    assert one.released == []
    kept.used(one, 1, 1_000)
    assert (one.released, kept.bytes) == ([0], 1_000)


def test_holders_are_not_kept_alive():
    kept = Kept(100)
    kept.used(Holder(), 0, 80)
    gc.collect()
    other = Holder()
    kept.used(other, 1, 80)
    assert (kept.bytes, other.released) == (80, [])

"""Running ahead: the same items, the same errors, and an end when nobody wants more."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.ahead import ahead


@given(st.lists(st.integers()))
def test_the_same_items_in_order(items):
    assert list(ahead(x for x in items)) == items


def test_an_error_comes_after_the_items_before_it():
    def broken():
        yield 1
        yield 2
        message = "broken"
        raise ValueError(message)

    seen = []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(x for x in _noting(ahead(broken()), seen))
    assert seen == [1, 2]


def _noting(items, seen):
    for item in items:
        seen.append(item)
        yield from ()


def test_the_next_is_made_while_one_is_used():
    made = []

    def items():
        for n in range(3):
            made.append(n)
            yield n

    it = ahead(items())
    assert next(it) == 0
    deadline = time.monotonic() + 60
    while len(made) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert list(it) == [1, 2]


@pytest.mark.parametrize("used", [1, 2, 5])
def test_who_wants_no_more_ends_it(used):
    closed = threading.Event()

    def endless():
        n = 0
        try:
            while True:
                yield n
                n += 1
        finally:
            closed.set()

    it = ahead(endless())
    for _ in range(used):
        next(it)
    it.close()
    assert closed.wait(60)

"""The checker of histories: right ones pass, every kind of mistake is found."""

from __future__ import annotations

import random

import pytest

from model.histories import History, Operation, check_linearizable, check_times


def history(*operations):
    """Each given as (kind, called, returned, numbers, timestamp)."""
    return History(
        [
            Operation(f"c{n}", kind, called, frozenset(numbers), returned, timestamp)
            for n, (kind, called, returned, numbers, timestamp) in enumerate(operations)
        ]
    )


RIGHT = [
    ("add", 1, 5, [1], 10),
    ("add", 2, 6, [2], 11),
    ("read", 3, 4, [], 9),
    ("read", 3, 7, [1], 10),
    ("read", 7, 8, [1, 2], 12),
    ("add", 9, None, [3], None),
    ("read", 10, 11, [1, 2, 3], 14),
    ("add", 9, None, [4], None),
]


def test_a_right_history_passes():
    assert check_linearizable(history(*RIGHT)) == []
    assert check_times(history(*RIGHT)) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("read", 7, 8, [1], 12), "misses what was done before it"),
        (("read", 3, 4, [2], 12), "contradict each other"),
        (("read", 8, 8, [1, 2, 3], 12), "sees the future"),
        (("read", 3, 4, [7], 12), "which were never added"),
        (("read", 12, 13, [1, 2], 15), "reads go back"),
    ],
)
def test_mistakes_are_found(wrong, message):
    found = check_linearizable(history(*RIGHT, wrong))
    assert any(message in line for line in found), found


def test_a_later_add_without_an_earlier_one_is_found():
    made = history(("add", 1, 2, [1], 1), ("add", 3, 9, [2], 2), ("read", 1, 9, [2], 2))
    assert any("has one that began after it" in line for line in check_linearizable(made))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("read", 20, 21, [1, 2, 3], 13), "time goes back"),
        (("add", 20, 21, [9], 14), "time goes back"),
        (("add", 1, 21, [9], 11), "two adds have one time"),
        (("read", 3, 7, [1], 11), "misses"),
        (("read", 3, 7, [1, 2], 10), "which is later"),
    ],
)
def test_times_that_do_not_explain_the_answers_are_found(wrong, message):
    found = check_times(history(*RIGHT, wrong))
    assert any(message in line for line in found), found


@pytest.mark.parametrize("seed", range(20))
def test_what_happens_at_one_moment_each_is_linearizable_and_not_if_a_read_is_stale(seed):
    """Operations that take effect between call and return, against a model of them."""
    choose = random.Random(seed)
    clock, numbers, spans = 0, set(), []
    for n in range(60):
        clock += 10
        called, returned = clock - choose.randrange(1, 40), clock + choose.randrange(1, 40)
        if choose.random() < 0.5:
            numbers = numbers | {n}
            spans.append(("add", called, returned, [n], clock))
        else:
            spans.append(("read", called, returned, numbers, clock))
    assert check_linearizable(history(*spans)) == []
    assert check_times(history(*spans)) == []
    stale = ("read", clock + 50, clock + 60, sorted(numbers)[:-1], clock + 55)
    assert check_linearizable(history(*spans, stale))
    assert check_times(history(*spans, stale))

"""Paces: a join is a join, and text tells them apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reclock.time.pace import Own, is_joint, joined, order, timeline_of
from reclock.time.timeline import EPOCH_MS
from strategies.times import timelines

ROOTS = st.frozensets(st.sampled_from(["", "u1", "u2", "u7"]), max_size=3)


def paces(timeline=EPOCH_MS):
    return ROOTS.map(
        lambda roots: timeline if roots <= {""} else Own(timeline, tuple(sorted(roots)))
    )


@given(paces(), paces(), paces())
def test_joining_is_associative_commutative_and_idempotent(a, b, c):
    def join(*some):
        return joined(EPOCH_MS, some)

    assert join(a, a) == a
    assert join(a, b) == join(b, a)
    assert join(join(a, b), c) == join(a, join(b, c)) == join(a, b, c)


@given(timelines(), timelines(), st.data())
def test_texts_tell_paces_apart(one, other, data):
    a, b = data.draw(paces(one)), data.draw(paces(other))
    assert (a == b) == (str(a) == str(b))
    assert timeline_of(a) == one


@given(st.lists(paces()))
def test_sources_move_first_and_joint_paces_last(some):
    kinds = [2 if is_joint(p) else 0 if isinstance(p, Own) else 1 for p in sorted(some, key=order)]
    assert kinds == sorted(kinds)

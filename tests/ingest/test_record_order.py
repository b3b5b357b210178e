"""Records of one key that arrive out of order: the last change counts, not the last record."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.errors import Error

KEPT = "RETAIN HISTORY FOR '1 h'"
INTO = "RECLOCK INTO EPOCH"
WAYS = [("", "strict"), (INTO, "strict"), ("", "complete"), (INTO, "complete")]


def create(shop, rest, order, **more):
    shop.create(rest=rest, options=f"transaction_order = '{order}', {KEPT}", **more)


@pytest.mark.parametrize("known", [True, False], ids=["in the log", "nowhere in a log"])
@pytest.mark.parametrize(("rest", "order"), WAYS)
def test_within_a_transaction_the_last_change_counts(shop, rest, order, known):
    create(shop, rest, order)
    begin, *rows, end = shop.transaction(
        ("orders", 1, "a"), ("orders", 1, "b"), ("orders", 1, "c"), ("orders", 2, "d")
    )
    if not known:
        for row in rows:
            row.value["payload"]["source"] = None
    shop.send(begin, *reversed(rows), end)
    shop.tick(1_000)
    for _ in range(2):
        assert shop.read("SELECT * FROM orders") == [(1, "c"), (2, "d")]
        shop.crash()
    assert shop.db.check() == []


@pytest.mark.parametrize("known", [True, False], ids=["in the log", "nowhere in a log"])
@pytest.mark.parametrize(("rest", "order"), WAYS)
def test_across_transactions_that_one_tick_binds_the_last_counts(shop, rest, order, known):
    create(shop, rest, order)
    first, second = shop.transaction(("orders", 1, "a")), shop.transaction(("orders", 1, "b"))
    if not known:
        for row in (first[1], second[1]):
            row.value["payload"]["source"] = None
    shop.send(first[0], first[2], second[0], second[2], second[1], first[1])
    shop.tick(1_000)
    for _ in range(2):
        assert shop.read("SELECT * FROM orders") == [(1, "b")]
        shop.crash()


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize(("rest", "order"), WAYS)
def test_one_that_comes_after_a_later_one_was_released_changes_nothing(shop, rest, order, dies):
    create(shop, rest, order)
    first = shop.transaction(("orders", 1, "a"), ("orders", 2, "a"))
    second = shop.transaction(("orders", 1, "b"))
    shop.send(first[0], first[3], *second)
    shop.tick(1_000)
    if order == "complete":
        assert shop.read("SELECT * FROM orders") == [(1, "b")]
    if dies:
        shop.crash()
    shop.send(first[2], first[1])
    shop.tick(1_000)
    for _ in range(2):
        assert shop.read("SELECT * FROM orders") == [(1, "b"), (2, "a")]
        shop.crash()
    assert shop.db.check() == []


@pytest.mark.parametrize("dies", [False, True])
def test_a_key_that_was_moved_out_of_turn(shop, dies):
    """An older change of the key before, or after, that comes late is left out by itself."""
    create(shop, INTO, "complete")
    shop.commit(("orders", 1, "a"), ("orders", 2, "b"))
    shop.tick(1_000)
    first = shop.transaction(("orders", 1, "late"), ("orders", 5, "moved here"))
    row = first[2].value["payload"]
    row |= {"op": "u", "before": {"id": 2, "x": "b"}}  # 2 becomes 5
    second = shop.transaction(("orders", 1, "new"), ("orders", 5, "newer"))
    shop.send(first[0], first[3], *second)
    shop.tick(1_000)
    assert shop.read("SELECT * FROM orders") == [(1, "new"), (2, "b"), (5, "newer")]
    if dies:
        shop.crash()
    shop.send(*first[1:3])
    shop.tick(1_000)
    assert shop.read("SELECT * FROM orders") == [(1, "new"), (5, "newer")]
    third = shop.transaction(("orders", 7, "from 5"))
    third[1].value["payload"] |= {"op": "u", "before": {"id": 5, "x": "newer"}}
    fourth = shop.transaction(("orders", 5, "back"))
    shop.send(third[0], third[2], *fourth)
    shop.tick(1_000)
    shop.send(third[1])
    shop.tick(1_000)
    assert shop.read("SELECT * FROM orders") == [(1, "new"), (5, "back"), (7, "from 5")]


@pytest.mark.parametrize(("rest", "order"), WAYS)
def test_a_key_that_moves_to_another_partition(shop, rest, order):
    """As when the topic gets more of them: offsets of two partitions say nothing."""
    create(shop, rest, order)
    shop.commit(("orders", 0, "x"), ("orders", 3, "x"), ("orders", 6, "x"))
    _, row, _ = first = shop.transaction(("orders", 0, "old"))
    _, other, _ = second = shop.transaction(("orders", 0, "new"))
    shop.send(first[0], row, first[2], second[0], other._replace(partition=1), second[2])
    shop.tick(1_000)
    assert shop.read("SELECT x FROM orders WHERE id = 0") == [("new",)]


@pytest.mark.parametrize("rest", ["", INTO])
def test_a_row_without_a_transaction_makes_no_repetition_of_those_that_wait(shop, rest):
    create(shop, rest, "strict")
    shop.send(*shop.transaction(("orders", 0, "a")))
    late = shop.transaction(("orders", 3, "b"))
    _, loose, _ = shop.transaction(("orders", 6, "c"))
    loose.value["payload"]["transaction"] = None
    shop.send(late[0], late[1], loose)
    shop.tick(1_000)
    assert shop.read("SELECT id FROM orders") == [(0,), (6,)]
    shop.send(late[2])
    shop.tick(1_000)
    assert shop.read("SELECT id FROM orders") == [(0,), (3,), (6,)]


def test_a_snapshot_is_before_what_follows_it_and_after_what_it_follows(shop):
    create(shop, INTO, "strict")
    read = [shop.transaction(("orders", 1, x))[1] for x in "ac"]
    for row in read:
        row.value["payload"] |= {"op": "r", "transaction": None, "source": None}
    begin, row, end = shop.transaction(("orders", 1, "b"))
    shop.send(read[0], begin, row, end)
    shop.tick(1_000)
    assert shop.read("SELECT x FROM orders") == [("b",)]
    begin, row, end = shop.transaction(("orders", 1, "d"))
    shop.send(begin, row, read[1], end)
    shop.tick(1_000)
    assert shop.read("SELECT x FROM orders") == [("c",)]


CHANGES = st.lists(
    st.tuples(st.just("orders"), st.integers(0, 3), st.none() | st.sampled_from("abcdef")),
    min_size=1, max_size=4,
)  # fmt: skip


def folded(transactions, released):
    """The rows after the transactions that are released, in the order of their numbers."""
    rows = {}
    for number, changes in enumerate(transactions):
        for _, key, value in changes if number in released else ():
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
    return sorted(rows.items())


def any_order(make_opener, make_shop, way, history, data):
    """Deliver records of transactions in any order, with restarts; compare with the model."""
    rest, order = way
    shop = make_shop(make_opener())
    create(shop, rest, order)
    mentions, rows = [], []
    for number, changes in enumerate(history):
        begin, *made, end = shop.transaction(*changes)
        mentions += [(number, begin), (number, end)]
        rows += [(number, message) for message in made]
    for message in (m for _, m in rows if m.value is not None and data.draw(st.booleans())):
        message.value["payload"]["source"] = None
    lacking = [sum(m.value is not None for n, m in rows if n == of) for of in range(len(history))]
    ended = set()
    queue = data.draw(st.permutations(rows))
    while queue or mentions:
        for _ in range(min(data.draw(st.integers(1, 4)), len(queue) + len(mentions))):
            some = [q for q in (queue, mentions) if q]
            number, message = data.draw(st.sampled_from(some)).pop(0)
            shop.send(message)
            if message.topic == shop.metadata:
                ended |= {number} if message.value["status"] == "END" else set()
            elif message.value is not None:
                lacking[number] -= 1
        if data.draw(st.integers(0, 3)) == 0:
            shop.crash()
        shop.tick(1_000)
        complete = {n for n in ended if not lacking[n]}
        strict = set(range(min(set(range(len(history))) - complete, default=len(history))))
        try:
            answer = shop.db.execute("SELECT id, x FROM orders ORDER BY id")
        except Error:
            assert not strict  # before the first
            continue
        if order == "strict":
            assert answer.rows == folded(history, strict)
        else:
            seen = {n for n in complete if shop.db.execute(known(n)).rows == []}
            assert strict <= seen
            assert answer.rows == folded(history, seen)
    assert shop.read("SELECT id, x FROM orders") == folded(history, set(range(len(history))))
    for number in range(len(history)) if (rest, order) == ("", "strict") else ():
        rows = shop.read(f"SELECT id, x FROM orders AS OF {number + 1}")
        assert rows == folded(history, set(range(number + 1)))
    assert shop.db.check() == []


def known(number):
    return f"SELECT number FROM reclock.source_transactions WHERE number = {number + 1}"


@settings(max_examples=16, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(WAYS), st.lists(CHANGES, min_size=1, max_size=4), st.data())
def test_any_order_of_records_gives_the_tables(make_opener, make_shop, way, history, data):
    any_order(make_opener, make_shop, way, history, data)


@pytest.mark.slow
@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(WAYS), st.lists(CHANGES, min_size=1, max_size=6), st.data())
def test_any_order_of_records_gives_the_tables_often(make_opener, make_shop, way, history, data):
    any_order(make_opener, make_shop, way, history, data)

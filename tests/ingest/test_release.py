"""Out of turn: sources of one consistency topic have the same transactions at every time."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.errors import Error, TimelineMismatch
from reclock.testing.failpoints import FailpointRaised, armed

COMPLETE = "transaction_order = 'complete', RETAIN HISTORY FOR '1 h'"
TABLES = ("orders", "items")
POINTS = ["ingest.read.after", "ingest.bind.before", "tick.compute.before", "tick.publish.before",
          "tick.publish.after"]  # fmt: skip


@pytest.mark.parametrize("into", ["", "RECLOCK INTO EPOCH"])
def test_a_transaction_is_released_when_it_is_complete_everywhere(shop, into):
    for table in TABLES:
        shop.create(table, rest=into, options=COMPLETE)
    shop.db.execute(
        "CREATE MATERIALIZED VIEW both AS SELECT o.id, o.x, i.x AS y FROM orders o "
        "FULL JOIN items i ON o.id = i.id"
    )
    begin, row, other, end = shop.transaction(("orders", 1, "a"), ("items", 1, "b"), name="late")
    shop.send(begin, row, end)
    shop.commit(("orders", 2, "c"), ("items", 2, "d"))
    shop.commit(("orders", 1, "e"), ("items", 3, "f"))  # it follows the first, in orders
    shop.tick(1_000)
    for _ in range(2):
        assert shop.read("SELECT * FROM both") == [(2, "c", "d")]
        assert "late" in shop.status("items")[1]
        shop.crash()
        shop.tick(1_000)
    before = shop.db.execute("SELECT * FROM both").timestamp
    shop.send(other)
    shop.tick(1_000)
    now = "SELECT * FROM both ORDER BY y"
    assert shop.db.execute(now).rows == [(1, "e", "b"), (2, "c", "d"), (None, None, "f")]
    query = "SELECT o.x, i.x FROM orders o JOIN items i ON o.id = i.id"
    assert shop.read(f"{query} AS OF {before}") == [("c", "d")]
    assert shop.db.check() == []


def test_it_is_a_timeline_of_its_own_that_the_topic_gives(shop, opener):
    shop.create("orders", options=COMPLETE)
    shop.create("items", options=COMPLETE)
    shop.create("items", "ordered")
    shop.create("items", "elsewhere", topic=opener.kafka.create_topic(1), options=COMPLETE)
    assert shop.read("SELECT * FROM orders, items") == []
    for other in ("ordered", "elsewhere"):
        with pytest.raises(TimelineMismatch) as caught:
            shop.read(f"SELECT * FROM orders, {other}")
        assert f"Counter(b:1, {shop.metadata}; complete)" in str(caught.value.detail)


def test_nothing_moves_while_nothing_is_complete(shop):
    shop.create("orders", options=COMPLETE)
    shop.commit(("orders", 1, "a"))
    name = f"Counter(b:1, {shop.metadata}; complete)"
    upper = shop.tick()[name]
    begin, row, end = shop.transaction(("orders", 2, "b"))
    shop.send(begin, row)
    assert shop.tick()[name] == shop.tick()[name] == upper
    shop.send(end)
    assert shop.tick()[name] == upper + 1


def test_a_new_one_catches_up_while_nobody_waits_for_it(shop):
    shop.create("orders", options=COMPLETE)
    stuck = shop.transaction(("orders", 70, "s"), name="stuck")
    shop.send(*stuck[:-1])
    for n in range(3):
        shop.commit(("orders", n, "a"), ("items", n, "z"))
    shop.tick()
    shop.create("items", options=f"{COMPLETE}, max_rows_per_tick = 1")
    had = 0
    for n in range(3, 9):
        shop.commit(("orders", n, "a"), ("items", n, "z"))
        shop.tick()
        count = len(shop.read("SELECT * FROM items"))
        assert had < count <= n + 1
        assert len(shop.read("SELECT * FROM orders")) in {n + 1, count}
        had = count
    for _ in range(9):
        shop.tick()
    assert shop.read("SELECT id FROM items") == shop.read("SELECT id FROM orders")
    begin, row, other, end = shop.transaction(("orders", 20, "a"), ("items", 20, "z"))
    shop.send(begin, row, end)
    shop.tick()  # it is one of them now
    assert (20,) not in shop.read("SELECT id FROM orders")
    shop.send(other, stuck[-1])
    for _ in range(3):
        shop.tick()
    assert {(70,), (20,)} <= {*shop.read("SELECT id FROM orders")}


def test_one_that_lacks_what_others_have_released_holds_up_nobody(shop):
    shop.create("orders", options=COMPLETE)
    begin, row, missing, end = shop.transaction(("orders", 1, "a"), ("items", 1, "b"))
    shop.send(begin, row, end)
    shop.tick()
    shop.create("items", options=COMPLETE)
    begin, row, late, end = shop.transaction(("orders", 2, "c"), ("items", 2, "d"))
    shop.send(begin, row, end)
    shop.tick()
    assert shop.read("SELECT id FROM orders") == [(1,), (2,)]
    assert shop.read("SELECT id FROM items") == []
    shop.send(late)
    shop.tick()
    assert shop.read("SELECT id FROM items") == [(2,)]
    shop.send(missing)
    shop.tick()
    assert shop.read("SELECT id FROM items") == [(1,), (2,)]


def test_one_that_has_failed_is_not_waited_for(shop):
    for table in TABLES:
        shop.create(table, options=COMPLETE)
    begin, row, end = shop.transaction(("items", 7, "x"), name="wrong")
    end.value["data_collections"][0]["event_count"] = 0
    shop.send(begin, row, end)
    for _ in range(2):
        shop.tick()
    with pytest.raises(Error, match="more rows than its END counts"):
        shop.read("SELECT * FROM items")
    shop.commit(("orders", 8, "b"), ("items", 8, "b"))
    shop.tick()
    assert shop.read("SELECT id FROM orders") == [(8,)]


CHANGES = st.lists(
    st.tuples(st.sampled_from(TABLES), st.integers(0, 3), st.none() | st.sampled_from("abc")),
    max_size=3, unique_by=lambda c: c[:2],
)  # fmt: skip


def agreeing(shop, history, data, into):
    """At every time both have the same transactions, each key as the last of them left it."""
    for table in TABLES:
        shop.create(table, rest=into, options=COMPLETE)
    by_part = {}
    for n, changes in enumerate(history):
        marks = [(table, 1_000 + n, "mark") for table in TABLES]
        for message in shop.transaction(*changes, *marks):
            by_part.setdefault(message[:2], []).append(message)
    queues = [*by_part.values()]
    times = []
    while any(queues):
        queue = data.draw(st.sampled_from([q for q in queues if q]))
        for _ in range(data.draw(st.integers(1, len(queue)))):
            shop.send(queue.pop(0))
        if data.draw(st.booleans()):
            point = data.draw(st.sampled_from(POINTS))
            with armed({point: "raise"}), suppress(FailpointRaised, Error):
                shop.tick(1_000)
            shop.crash()
        shop.tick(1_000)
        times.append(shop.db.execute("SELECT * FROM orders, items").timestamp)
    had = set()
    for time in sorted(set(times)):
        found = {
            table: dict(shop.db.execute(f"SELECT id, x FROM {table} AS OF {time}").rows)
            for table in TABLES
        }
        marks = [{key for key in found[table] if key >= 1_000} for table in TABLES]
        assert marks[0] == marks[1]
        assert had <= marks[0]
        had = marks[0]
        for table in TABLES:
            expected = {}
            for n in sorted(had):
                changes = [c[1:] for c in history[n - 1_000] if c[0] == table]
                expected |= {n: "mark", **dict(changes)}
            assert found[table] == {key: x for key, x in expected.items() if x is not None}
    assert len(had) == len(history)
    assert shop.db.check() == []


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(CHANGES, min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["", "RECLOCK INTO EPOCH"]),
)
def test_at_every_time_all_have_the_same(make_opener, make_shop, history, data, into):
    agreeing(make_shop(make_opener()), history, data, into)


@pytest.mark.slow(seconds=60)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(CHANGES, min_size=1, max_size=6),
    st.data(),
    st.sampled_from(["", "RECLOCK INTO EPOCH"]),
)
def test_at_every_time_all_have_the_same_for_long(make_opener, make_shop, history, data, into):
    agreeing(make_shop(make_opener()), history, data, into)

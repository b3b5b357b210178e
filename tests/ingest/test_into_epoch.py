"""RECLOCK INTO EPOCH: whole transactions in wall-clock time, with everything else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed

INTO = "RECLOCK INTO EPOCH"
POINTS = ["ingest.read.after", "ingest.bind.before", "tick.compute.before", "tick.publish.before",
          "tick.publish.after"]  # fmt: skip


def test_transactions_join_tables_and_everything_else(shop):
    shop.create("orders", rest=INTO)
    shop.create("items", rest=INTO)
    shop.db.execute("CREATE TABLE names (x TEXT, name TEXT)")
    shop.db.execute("INSERT INTO names VALUES ('a', 'anna'), ('b', 'ben')")
    shop.db.execute(
        "CREATE MATERIALIZED VIEW named AS SELECT o.id, name, i.x AS item FROM orders o "
        "JOIN items i ON o.id = i.id JOIN names ON o.x = names.x"
    )
    shop.commit(("orders", 1, "a"), ("items", 1, "y"))
    shop.tick(1_000)
    assert shop.read("SELECT * FROM named") == [(1, "anna", "y")]
    begin, row, other, end = shop.transaction(("orders", 1, "b"), ("items", 1, "z"))
    shop.send(begin, row, end)
    shop.tick(1_000)
    assert shop.read("SELECT * FROM named") == [(1, "anna", "y")]
    assert shop.status("items")[0] == "waiting"
    shop.db.execute("INSERT INTO names VALUES ('c', 'carl')")  # nobody else waits
    shop.send(other)
    shop.tick(1_000)
    assert shop.read("SELECT * FROM named") == [(1, "ben", "z")]
    assert shop.status("items") == ("running", None)
    assert shop.db.check() == []


def test_the_second_map_says_which_transactions_a_time_has(shop):
    shop.create("orders", rest=INTO)
    shop.commit(("orders", 1, "a"))
    shop.commit(("items", 1, "z"))
    shop.tick(1_000)
    first = shop.db.execute("SELECT * FROM orders").timestamp
    shop.commit(("orders", 2, "b"))
    shop.tick(1_000)
    second = shop.db.execute("SELECT * FROM orders").timestamp
    for _ in range(2):
        bound = shop.read(
            "SELECT timestamp, \"offset\" FROM reclock.bindings WHERE partition = 'transaction'"
        )
        assert bound == [(first, 3), (second, 4)]
        times = [
            shop.read(f"SELECT timestamp FROM reclock.translate('orders', 'transaction', {n})")
            for n in (1, 2, 3, 4)
        ]
        assert times == [[(first,)], [(first,)], [(second,)], [(None,)]]
        shop.crash()
        shop.tick()
        assert shop.status() == ("running", None)


def test_what_waits_is_durable_and_a_stuck_one_holds_up_its_kind_alone(shop):
    shop.create("orders", rest=INTO)
    shop.create("items", rest=INTO)
    shop.create("orders", "alone", rest=INTO, options="transaction_order = 'complete'")
    shop.commit(("orders", 1, "a"), ("items", 1, "y"))
    shop.tick(1_000)
    begin, row, end = shop.transaction(("orders", 2, "b"), name="stuck")
    shop.send(begin, row)
    shop.commit(("orders", 3, "c"), ("items", 2, "z"))
    for _ in range(2):
        shop.tick(1_000)
        assert shop.read("SELECT id FROM orders") == [(1,)]
        assert shop.read("SELECT id FROM items") == [(1,)]
        assert shop.read("SELECT id FROM alone") == [(1,), (3,)]
        assert "stuck" in shop.status()[1]
        shop.crash()
    query = (
        "SELECT records FROM reclock.arrangement_sizes WHERE object = 'alone' AND operator = 'temp'"
    )
    assert shop.read(query) == [(5,)]  # two are done, one is begun and has a row; one key passed it
    shop.send(end)
    shop.tick(1_000)
    assert shop.read("SELECT id FROM orders") == shop.read("SELECT id FROM alone")
    assert shop.read("SELECT id FROM items") == [(1,), (2,)]


def test_a_new_one_catches_up_and_a_failed_one_is_not_waited_for(shop):
    shop.create("orders", rest=INTO)
    for n in range(3):
        shop.commit(("orders", n, "a"), ("items", n, "z"))
    shop.tick(1_000)
    shop.create("items", rest=INTO, options="max_rows_per_tick = 1")
    while shop.read("SELECT id FROM items") != [(0,), (1,), (2,)]:
        shop.tick(1_000)
    begin, row, end = shop.transaction(("items", 7, "x"), name="wrong")
    end.value["data_collections"][0]["event_count"] = 0
    shop.send(begin, row, end)
    shop.commit(("orders", 8, "b"))
    for _ in range(2):
        shop.tick(1_000)
    with pytest.raises(Error, match="more rows than its END counts"):
        shop.read("SELECT * FROM items")
    assert (8,) in shop.read("SELECT id FROM orders")


def test_rows_without_a_transaction_do_not_wait(shop):
    shop.create("orders", rest=INTO)
    (_, row, _) = shop.transaction(("orders", 1, "s"))
    row.value["payload"] |= {"op": "r", "transaction": None}
    shop.send(row)
    shop.tick(1_000)
    assert shop.read("SELECT * FROM orders") == [(1, "s")]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["orders", "items"]), st.integers(0, 5),
              st.none() | st.sampled_from("abc")),
    min_size=1, max_size=5, unique_by=lambda c: c[:2],
)  # fmt: skip


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGES, min_size=1, max_size=4), st.data())
def test_at_every_time_all_sources_have_the_same_transactions(
    make_opener, make_shop, history, data
):
    shop = make_shop(make_opener())
    for table in ("orders", "items"):
        shop.create(table, rest=INTO)
    states = [{table: dict(rows) for table, rows in shop.rows.items()}]
    by_part = {}
    for changes in history:
        for message in shop.transaction(*changes):
            by_part.setdefault(message[:2], []).append(message)
        states.append({table: dict(rows) for table, rows in shop.rows.items()})
    queues = [*by_part.values()]
    while any(queues):
        queue = data.draw(st.sampled_from([q for q in queues if q]))
        for _ in range(data.draw(st.integers(1, len(queue)))):
            shop.send(queue.pop(0))
        if data.draw(st.booleans()):
            point = data.draw(st.sampled_from(POINTS))
            with armed({point: "raise"}), suppress(FailpointRaised, Error):
                shop.tick(1_000)
            shop.crash()
        else:
            shop.tick(1_000)
    shop.tick(1_000)
    times = shop.db.execute("SELECT DISTINCT timestamp FROM reclock.ticks").rows
    bound = "SELECT timestamp FROM reclock.bindings"
    times = sorted({t for (t,) in (*times, *shop.db.execute(bound).rows)})
    upper = max(times)
    seen = 0
    for time in times:
        try:
            found = {
                table: dict(shop.db.execute(f"SELECT id, x FROM {table} AS OF {time}").rows)
                for table in ("orders", "items")
            }
        except Error:
            continue  # before there was anything
        assert found in states[seen:]
        seen = states.index(found, seen)
        if time == upper:
            assert found == states[-1]
    assert shop.db.check() == []

"""Sources with a consistency topic through SQL: whole transactions, numbered, through restarts."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock.errors import (
    Error,
    InvalidValue,
    NotSupported,
    PositionsLost,
    StatementError,
    TimelineMismatch,
)
from reclock.ingest.cdcv2_intake import StatedIntake
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

COLUMNS = "(id BIGINT PRIMARY KEY, x TEXT)"
KEPT = "RETAIN HISTORY FOR '1 h'"
POINTS = ["ingest.read.after", "ingest.bind.before", "tick.compute.before", "tick.publish.before",
          "tick.publish.after"]  # fmt: skip


def test_a_transaction_is_there_when_all_of_it_is(shop):
    shop.create()
    begin, *rows, end = shop.transaction(("orders", 1, "a"), ("items", 1, "z"), ("orders", 2, "b"))
    shop.send(begin, rows[0], end)
    shop.tick()
    assert shop.status()[0] == "waiting"
    assert "lacks 1 of 2 rows; 1 updates wait" in shop.status()[1]
    shop.send(rows[2])
    name = f"Counter(b:1, {shop.metadata})"
    assert shop.tick()[name] == 2
    answer = shop.db.execute("SELECT id, x FROM orders ORDER BY id")
    assert (answer.rows, answer.timestamp) == ([(1, "a"), (2, "b")], 1)
    assert shop.status() == ("running", None)
    shop.commit(("orders", 1, "c"), ("orders", 2, None))
    shop.tick()
    assert shop.read("SELECT * FROM orders") == [(1, "c")]
    assert shop.read("SELECT * FROM orders AS OF 1") == [(1, "a"), (2, "b")]
    assert shop.db.check() == []


def test_two_sources_of_one_topic_join_with_whole_transactions(shop):
    shop.create("orders")
    shop.create("items")
    shop.commit(("orders", 1, "a"), ("items", 1, "z"))
    shop.tick()
    shop.db.execute(
        "CREATE MATERIALIZED VIEW both WITH (RETAIN HISTORY FOR '1 h') AS "
        "SELECT o.id, o.x, i.x AS y FROM orders o JOIN items i ON o.id = i.id"
    )
    *all_but_one, end = shop.transaction(("orders", 1, "b"), ("items", 1, "y"))
    late = all_but_one.pop()
    shop.send(*all_but_one, end)
    for _ in range(2):
        shop.tick()
    assert shop.read("SELECT * FROM both") == [(1, "a", "z")]
    assert shop.read("SELECT o.x, i.x FROM orders o, items i") == [("a", "z")]
    shop.send(late)
    for _ in range(2):
        shop.tick()
    assert shop.read("SELECT * FROM both") == [(1, "b", "y")]
    assert shop.read("SELECT * FROM both AS OF 1") == [(1, "a", "z")]


def test_sources_of_different_topics_do_not_join(shop, opener):
    shop.create("orders")
    shop.create("items", topic=opener.kafka.create_topic(1))
    shop.db.execute("CREATE TABLE t (id BIGINT)")
    for second in ("items", "t"):
        with pytest.raises(TimelineMismatch) as caught:
            shop.read(f"SELECT * FROM orders, {second}")
        assert f"Counter(b:1, {shop.metadata})" in str(caught.value.detail)


def test_a_timeline_that_the_user_names(shop):
    shop.create("orders", options="timeline = 'shop'")
    shop.create("items")
    shop.db.execute("CREATE TABLE notes (id BIGINT, note TEXT) WITH (timeline = 'shop')")
    shop.commit(("orders", 1, "a"), ("items", 1, "z"))
    for _ in range(2):
        shop.tick()
    shop.db.execute("INSERT INTO notes VALUES (1, 'in a hurry')")
    shop.commit(("orders", 2, "b"))
    shop.commit(("orders", 3, "c"))
    for _ in range(2):
        shop.tick()
    query = "SELECT o.id, note FROM orders o JOIN notes n ON o.id = n.id"
    assert shop.read(query) == [(1, "in a hurry")]
    with pytest.raises(TimelineMismatch):
        shop.read("SELECT * FROM orders, items")  # not with what the kind has by default


def test_two_sinks_in_one_consistency_topic_are_not_taken_for_one(shop):
    """Their transactions have the same ids: rows that are counted elsewhere wait, loudly."""
    shop.create("orders")
    _, row, other, end = shop.transaction(("orders", 1, "a"), ("items", 1, "z"), name="7")
    for at, collection in enumerate(("public.items", "public.orders")):
        said = {"data_collection": collection, "event_count": 1}
        shop.send(end._replace(value={**end.value, "data_collections": [said]}))
        if at == 0:
            shop.send(row, other)
    shop.tick()
    assert shop.status()[0] == "waiting"
    assert 'its END counts those of "public.items" alone' in shop.status()[1]


def test_the_long_spelling_is_the_same(shop):
    shop.db.execute(
        f"CREATE SOURCE orders {COLUMNS} FROM KAFKA BROKER 'b:1' TOPIC '{shop.topics['orders']}' "
        f"FORMAT JSON ENVELOPE DEBEZIUM (TRANSACTION METADATA TOPIC '{shop.metadata}')"
    )
    shop.commit(("orders", 1, "a"))
    shop.tick()
    assert shop.read("SELECT * FROM orders") == [(1, "a")]


@pytest.mark.placed  # of what tasks read, files wait
def test_what_waits_is_durable_visible_and_not_read_again(shop):
    shop.create()
    shop.commit(("orders", 1, "a"))
    begin, row, other, end = shop.transaction(("orders", 2, "b"), ("orders", 3, "c"))
    shop.send(begin, row)
    shop.tick()
    query = (
        "SELECT records FROM reclock.arrangement_sizes WHERE operator = 'temp' "
        "AND object = 'orders'"
    )
    assert shop.read(query) == [(3,)]  # BEGIN, a row, and the id of the one that is done
    shop.crash()
    assert shop.status()[0] == "starting"
    shop.send(other, end)
    shop.tick()
    assert shop.read("SELECT * FROM orders") == [(1, "a"), (2, "b"), (3, "c")]
    read = shop.db.execute("SELECT rows FROM reclock.source_status").rows
    assert read == [(2,)]


def test_what_is_read_while_a_tick_begins_is_not_bound_by_it(shop, monkeypatch):
    """A thread reads on between what a tick offers and what it takes."""
    shop.create()
    shop.commit(("orders", 1, "a"))
    begin, row, end = shop.transaction(("orders", 2, "b"))
    taken = StatedIntake.take_own

    def late(intake, state, time):
        shop.send(begin, row)
        assert intake.pull()
        return taken(intake, state, time)

    with monkeypatch.context() as patch:
        patch.setattr(StatedIntake, "take_own", late)
        shop.tick()
    shop.crash()
    shop.send(end)
    shop.tick()
    assert shop.read("SELECT * FROM orders") == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("order", ["strict", "complete"])
def test_a_stuck_transaction_is_told_can_be_looked_at_and_holds_up_nobody_else(shop, order):
    shop.create("orders", options=f"transaction_order = '{order}', {KEPT}")
    shop.create("items")
    shop.db.execute("CREATE TABLE t (id BIGINT)")
    begin, row, end = shop.transaction(("orders", 1, "a"), name="stuck")
    shop.send(begin, row)
    shop.commit(("orders", 2, "b"), ("items", 1, "z"))
    shop.tick(1_000)
    state, detail = shop.status()
    assert (state, detail.split(";")[0]) == (
        "waiting", 'number 1, transaction "stuck" has no END',
    )  # fmt: skip
    known = "SELECT number, transaction, state, rows, counted FROM reclock.source_transactions "
    later = [] if order == "complete" else [(2, "679:108", "complete", 1, 1)]
    assert shop.read(f"{known} WHERE source = 'orders' ORDER BY number") == [
        (1, "stuck", "begun", 1, None), *later,
    ]  # fmt: skip
    shop.db.execute("INSERT INTO t VALUES (1)")
    assert shop.read("SELECT * FROM t") == [(1,)]
    if order == "complete":
        assert shop.read("SELECT * FROM orders") == [(2, "b")]
    else:
        with pytest.raises(Error, match="not complete"):
            shop.read("SELECT * FROM orders")
    shop.crash()
    shop.tick()
    assert shop.status()[0] == "waiting"
    shop.send(end)
    shop.tick()
    assert shop.read("SELECT * FROM orders") == [(1, "a"), (2, "b")]
    assert shop.status() == ("running", None)
    assert shop.read(f"{known} WHERE source = 'orders'") == []


def test_out_of_turn_an_older_transaction_is_no_repetition(shop):
    shop.create(options=f"transaction_order = 'complete', {KEPT}")
    *early, end = shop.transaction(("orders", 0, "a"), ("orders", 3, "b"))
    late = early.pop()
    shop.send(*early, end)
    shop.commit(("orders", 6, "c"), ("orders", 9, "d"))  # of the same partition
    shop.tick()
    first = shop.db.execute("SELECT id FROM orders ORDER BY id")
    assert first.rows == [(6,), (9,)]
    shop.crash()
    shop.send(late)
    shop.tick()
    assert shop.read("SELECT id FROM orders") == [(0,), (3,), (6,), (9,)]
    assert shop.read(f"SELECT id FROM orders AS OF {first.timestamp}") == [(6,), (9,)]
    timelines = shop.read("SELECT timeline FROM reclock.timelines")
    assert timelines == [(f"Counter(b:1, {shop.metadata}; complete)",)]


@pytest.mark.parametrize("into", ["", "RECLOCK INTO EPOCH"])
@pytest.mark.parametrize("point", POINTS)
def test_a_tick_that_fails_is_run_again(shop, into, point):
    shop.create(rest=into)
    shop.commit(("orders", 1, "a"))
    shop.tick(1_000)
    begin, row, other, end = shop.transaction(("orders", 2, "b"), ("orders", 3, "c"))
    shop.commit(("orders", 1, "d"))
    shop.send(begin, row)
    with armed({point: "raise"}), suppress(FailpointRaised):
        shop.tick(1_000)
    for _ in range(2):
        shop.tick(1_000)
    assert shop.read("SELECT * FROM orders") == [(1, "d")]
    shop.send(other, end)
    shop.tick(1_000)
    assert shop.read("SELECT * FROM orders") == [(1, "d"), (2, "b"), (3, "c")]
    assert shop.db.check() == []


def test_any_order_of_begin_end_and_rows(shop):
    shop.create()
    for n, order in enumerate([(2, 0, 1), (1, 0, 2), (1, 2, 0), (2, 1, 0)]):
        messages = shop.transaction(("orders", n, "a"))
        for at in order:
            shop.send(messages[at])
            shop.tick()
    assert shop.read("SELECT id FROM orders") == [(0,), (1,), (2,), (3,)]
    assert shop.db.execute("SELECT * FROM orders").timestamp == 4


def test_collections_that_it_does_not_read_are_not_waited_for(shop):
    shop.create("orders")
    shop.commit(("items", 1, "z"))
    shop.commit(("orders", 1, "a"))
    shop.tick()
    answer = shop.db.execute("SELECT * FROM orders")
    assert (answer.rows, answer.timestamp) == ([(1, "a")], 2)
    assert shop.read("SELECT * FROM orders AS OF 1") == []


def test_rows_that_are_counted_under_another_name_wait_and_say_so(shop):
    shop.create("orders")
    begin, row, end = shop.transaction(("orders", 1, "a"))
    end.value["data_collections"][0]["data_collection"] = "sales.orders_v2"
    shop.send(begin, row, end)
    shop.tick()
    state, detail = shop.status()
    assert state == "waiting"
    assert '1 rows here, but its END counts those of "sales.orders_v2" alone' in detail
    shop.create("orders", "named", options="data_collection = 'sales.orders_v2'")
    shop.tick()
    assert shop.read("SELECT * FROM named") == [(1, "a")]


def test_what_a_restarted_connector_sends_again_says_nothing(shop):
    shop.create()
    shop.create(name="bare", columns="(id BIGINT, x TEXT)")
    first = shop.commit(("orders", 1, "a"), ("orders", 2, "b"))
    shop.tick()
    second = shop.transaction(("orders", 1, "c"), ("orders", 4, "d"))
    shop.send(*second[:2], *first[1:], *second)
    shop.commit(("orders", 3, "e"))
    shop.tick()
    shop.send(*second[2:])
    shop.tick()
    rows = [(1, "c"), (2, "b"), (3, "e"), (4, "d")]
    for source in ("orders", "bare"):
        assert shop.read(f"SELECT * FROM {source}") == rows
        assert shop.db.execute(f"SELECT * FROM {source}").timestamp == 3
        assert shop.status(source) == ("running", None)


def test_a_snapshot_comes_with_the_first_transaction(shop):
    shop.create()
    for key in range(3):
        (_, row, _) = shop.transaction(("orders", key, "s"))
        row.value["payload"] |= {"op": "r", "before": None, "transaction": None}
        shop.send(row)
    shop.tick()
    assert "rows without a transaction wait" in shop.status()[1]
    shop.crash()
    shop.commit(("orders", 1, "t"))
    shop.tick()
    assert shop.read("SELECT * FROM orders AS OF 1") == [(0, "s"), (1, "t"), (2, "s")]


@pytest.mark.parametrize("engine", [ModelEngine, LocalEngine])
def test_more_rows_than_counted_end_the_source(opener, make_shop, engine):
    opener.engine = engine
    shop = make_shop(opener)
    shop.create("orders")
    shop.create("items")
    begin, row, other, end = shop.transaction(("orders", 1, "a"), ("orders", 2, "b"))
    end.value["data_collections"][0]["event_count"] = 1
    shop.send(begin, row, other, end)
    shop.commit(("items", 1, "z"))
    shop.tick()
    assert shop.status()[0] == "failed"
    with pytest.raises(Error, match="more rows than its END counts"):
        shop.read("SELECT * FROM orders")
    shop.tick()
    assert shop.read("SELECT * FROM items") == [(1, "z")]


def test_records_that_do_not_decode(shop):
    shop.create()
    begin, row, end = shop.transaction(("orders", 1, "a"))
    row.value["payload"]["after"] = {"id": "not a number", "x": "a"}
    shop.send(begin, row, end)
    shop.tick()
    with pytest.raises(Error, match="not a number"):
        shop.read("SELECT * FROM orders")
    shop.kafka.produce(shop.metadata, 0, Record(b"no JSON"))
    shop.kafka.produce(shop.metadata, 0, Record(b'{"status": "MIDDLE", "id": "x"}'))
    shop.kafka.produce(shop.metadata, 0, Record(b'{"frontier": [7], "version": 1}'), Record(None))
    shop.tick()
    assert "rows without a transaction wait" in shop.status()[1]
    shop.commit(("orders", 1, "b"))
    shop.tick()
    errors = shop.db.execute("SELECT message FROM reclock.errors").rows
    assert len(errors) == 2  # with a key, the row that is wrong was replaced
    assert all(shop.metadata in message for (message,) in errors)


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ("ENVELOPE NONE WITH (consistency_topic = '{m}')", StatementError, "ENVELOPE DEBEZIUM"),
        ("ENVELOPE DEBEZIUM WITH (transaction_order = 'strict')", StatementError, "is for sources"),
        ("ENVELOPE DEBEZIUM RECLOCK INTO EPOCH", StatementError, "is for sources"),
        ("ENVELOPE DEBEZIUM WITH (consistency_topic = '{t}')", StatementError, "of itself"),
        ("ENVELOPE DEBEZIUM (TRANSACTION METADATA TOPIC 'x') WITH (consistency_topic = '{m}')",
         StatementError, "two consistency topics"),
        ("ENVELOPE DEBEZIUM WITH (consistency_topic = '{m}', transaction_order = 'any')",
         InvalidValue, "transaction_order"),
        ("ENVELOPE DEBEZIUM WITH (consistency_topic = '{m}', transaction_order = 'complete')",
         StatementError, "PRIMARY KEY"),
        ("ENVELOPE DEBEZIUM WITH (consistency_topic = '{m}', start_offset = 'latest')",
         StatementError, "start_offset"),
        ("ENVELOPE DEBEZIUM RECLOCK INTO EPOCH WITH (consistency_topic = '{m}', timeline = 'x')",
         StatementError, "timeline"),
        ("ENVELOPE DEBEZIUM WITH (consistency_topic = '{t}2')", InvalidValue, "3 partitions"),
        ("ENVELOPE DEBEZIUM WITH (consistency_topic = 'nowhere')", Error, "does not exist"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(shop, clause, error, message):
    topic = shop.topics["orders"]
    shop.kafka._make(f"{topic}2", 3)
    text = clause.format(m=shop.metadata, t=topic)
    with pytest.raises(error, match=message):
        shop.db.execute(
            f"CREATE SOURCE s (id BIGINT, x TEXT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' "
            f"FORMAT JSON {text}"
        )
    with pytest.raises(NotSupported, match="JSON, or in Avro"):
        shop.db.execute(
            f"CREATE SOURCE s (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT CSV "
            f"ENVELOPE DEBEZIUM WITH (consistency_topic = '{shop.metadata}')"
        )
    assert shop.read("SHOW SOURCES") == []


def test_a_later_source_counts_as_the_first_does_and_a_forgotten_topic_never_goes_back(shop):
    shop.create("orders")
    for n in range(4):
        shop.commit(("orders", n, "a"), ("items", n, "z"))
    shop.tick()
    shop.create("items")
    shop.tick()
    query = "SELECT o.id, i.id FROM orders o JOIN items i ON o.id = i.id AS OF {}"
    assert shop.read(query.format(2)) == [(0, 0), (1, 1)]
    shop.kafka.truncate(shop.metadata, 0, 8)
    with pytest.raises(PositionsLost, match="has lost its beginning"):
        shop.create("items", "late")  # it would count from another one
    for name in ("orders", "items"):
        shop.db.execute(f"DROP SOURCE {name}")
    for partition in range(3):
        end = shop.kafka.partition(shop.topics["orders"], partition).stable("read_committed")
        shop.kafka.truncate(shop.topics["orders"], partition, end)
    shop.create("orders")
    shop.commit(("orders", 9, "b"))
    shop.tick()
    answer = shop.db.execute("SELECT id FROM orders")
    assert (answer.rows, answer.timestamp) == ([(9,)], 5)
    shop.create("items")
    shop.commit(("orders", 8, "b"), ("items", 8, "b"))
    shop.tick()
    assert shop.read(query.format(6)) == [(8, 8)]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["orders", "items"]), st.integers(0, 5),
              st.none() | st.sampled_from("abc")),
    min_size=1, max_size=5, unique_by=lambda c: c[:2],
)  # fmt: skip


def crashing(shop, history, data):
    """At every number both sources have exactly the first transactions, whatever happened."""
    shop.create("orders")
    shop.create("items")
    states, messages = [], []
    for changes in history:
        messages += shop.transaction(*changes)
        states.append({table: dict(rows) for table, rows in shop.rows.items()})
    by_part = {}
    for message in messages:
        by_part.setdefault(message[:2], []).append(message)
    queues = [*by_part.values()]
    while any(queues):
        queue = data.draw(st.sampled_from([q for q in queues if q]))
        for _ in range(data.draw(st.integers(1, len(queue)))):
            shop.send(queue.pop(0))
        if data.draw(st.booleans()):
            point = data.draw(st.sampled_from(POINTS))
            with armed({point: "raise"}), suppress(FailpointRaised, Error):
                shop.tick()
            shop.crash()
        else:
            shop.tick()
    shop.tick()
    for number, state in enumerate(states, 1):
        for table, rows in state.items():
            found = shop.db.execute(f"SELECT id, x FROM {table} AS OF {number}").rows
            assert dict(found) == rows
            assert len(found) == len(rows)
    assert shop.db.check() == []


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(CHANGES, min_size=1, max_size=3), data=st.data())
def test_transactions_over_three_partitions_and_two_topics_with_crashes_anywhere(
    make_opener, make_shop, history, data
):
    crashing(make_shop(make_opener()), history, data)


@pytest.mark.slow(seconds=20)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(CHANGES, min_size=1, max_size=6), data=st.data())
def test_the_same_for_long(make_opener, make_shop, history, data):
    crashing(make_shop(make_opener()), history, data)

"""Transactions over a broker, read in the background while they are written."""

from __future__ import annotations

from debezium import Change, Connector

COUNT = 12


def test_readers_see_whole_transactions_while_they_are_written_and_the_process_restarts(lab):
    connector = Connector(lab.kafka.create_topic(1), ["orders"], 3)
    topic = connector.topics["orders"] = lab.kafka.create_topic(3)
    rest = (
        "FORMAT JSON ENVELOPE DEBEZIUM {} WITH (consistency_topic = '{}', data_collection = '{}')"
    )
    names = {"counted": "", "now": "RECLOCK INTO EPOCH"}
    db = lab.open(background=True)
    columns = "(id BIGINT PRIMARY KEY, x TEXT)"
    for name, into in names.items():
        told = rest.format(into, connector.metadata, "public.orders")
        lab.source(db, topic, told, name, columns)

    def seen(name):
        rows = db.execute(f"SELECT id, x FROM {name}").rows
        values = {value for _, value in rows}
        assert len(values) <= 1  # every transaction writes the same to all rows
        assert len(rows) in (0, 6)
        return max(map(int, values), default=-1)

    db.execute("SET transaction_isolation = 'serializable'")
    for n in range(COUNT):
        changes = (Change("orders", key, str(n)) for key in range(6))
        for message in connector.transaction(*changes):
            lab.kafka.produce(message.topic, message.partition, message.record)
        if n == 0:
            lab.eventually(lambda: seen("now") == 0)
            lab.eventually(lambda db=db: status(db) == [("running", None)] * 2)
        else:
            assert 0 <= seen("now") <= n
            assert 0 <= seen("counted") <= n
        if n == COUNT // 2:
            db.close()
            db = lab.open(background=True)
            db.execute("SET transaction_isolation = 'serializable'")
    for name in names:
        lab.eventually(lambda name=name: seen(name) == COUNT - 1)
    assert db.execute("SELECT * FROM counted").timestamp == COUNT
    assert db.check() == []


def status(db):
    return db.execute("SELECT state, detail FROM reclock.source_status").rows

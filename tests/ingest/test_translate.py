"""Progress across timelines: offsets per time and times per offset, now and AS OF."""

from __future__ import annotations

import json

import pytest

from reclock.errors import Error
from reclock.testing.kafka_upstream import Record

KEPT = "RETAIN HISTORY FOR '1 h'"


@pytest.fixture
def bound(opener):
    """A source of two partitions that is bound at 2000 and 4000."""
    db = opener()
    topic = opener.kafka.create_topic(2)
    db.execute(
        f"CREATE SOURCE s (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
        f"WITH ({KEPT})"
    )
    for at, counts in ((2_000, (2, 0)), (4_000, (1, 3))):
        opener.clock.set(at)
        for partition, count in enumerate(counts):
            opener.kafka.produce(topic, partition, *[Record(b'{"id": 1}')] * count)
        db.tick()
    return db


def rows(db, query):
    return sorted(db.execute(query).rows)


def test_offsets_at_a_time(bound):
    for time, wanted in ((1_999, (0, 0)), (2_000, (2, 0)), (3_999, (2, 0)), (9_000, (3, 3))):
        found = rows(bound, f"SELECT * FROM reclock.translate('s', {time})")
        assert found == [("0", wanted[0]), ("1", wanted[1])]


def test_the_time_of_a_position(bound):
    for position, time in (("0:0", 2_000), ("0:1", 2_000), ("0:2", 4_000), ("1:2", 4_000)):
        assert rows(bound, f"SELECT * FROM reclock.translate('s', '{position}')") == [(time,)]
        part, offset = position.split(":")
        query = f"SELECT timestamp FROM reclock.translate('s', '{part}', {offset})"
        assert rows(bound, query) == [(time,)]
    assert rows(bound, "SELECT timestamp IS NULL FROM reclock.translate('s', '0:3')") == [(True,)]


def test_as_of_a_time_only_what_was_known_then_is(bound):
    query = "SELECT timestamp IS NULL FROM reclock.translate('s', '0:2') AS OF {}"
    assert rows(bound, query.format(3_000)) == [(True,)]
    assert rows(bound, query.format(4_000)) == [(False,)]
    offsets = "SELECT max(\"offset\") FROM reclock.translate('s', 9000) AS OF 3000"
    assert rows(bound, offsets) == [(2,)]


@pytest.mark.parametrize("rest", ["9000", "'0:2'", "'0', 2"])
def test_a_name_that_is_no_source_is_an_error(bound, rest):
    bound.execute("CREATE TABLE t (id BIGINT)")
    for name, code in (("ss", "42P01"), ("t", "42809")):
        for _ in range(2):
            with pytest.raises(Error) as caught:
                rows(bound, f"SELECT * FROM reclock.translate('{name}', {rest})")
            assert caught.value.code == code
            assert f'"{name}"' in caught.value.message
            with pytest.raises(Error) as caught:
                bound.execute(f"SELECT * FROM reclock.translate($1, {rest})", [name])
            assert caught.value.code == code
        bound.execute(f"SELECT * FROM reclock.translate($1, {rest})", ["s"])
    assert bound.execute(f"SELECT * FROM reclock.translate($1, {rest})", ["s"]).rows


def test_both_directions_agree_on_every_offset(bound):
    for part in ("0", "1"):
        for offset in range(3):
            ((time,),) = rows(bound, f"SELECT * FROM reclock.translate('s', '{part}:{offset}')")
            at = dict(rows(bound, f"SELECT * FROM reclock.translate('s', {time})"))
            before = dict(rows(bound, f"SELECT * FROM reclock.translate('s', {time - 1})"))
            assert before[part] <= offset < at[part]


def test_the_times_of_a_sender_are_translated_too(opener):
    db = opener()
    topic = opener.kafka.create_topic(1)
    db.execute(
        f"CREATE SOURCE cdc (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
        f"ENVELOPE MATERIALIZE WITH ({KEPT})"
    )
    for lower, upper in ((0, 70), (70, 90)):
        said = {"progress": {"lower": [lower], "upper": [upper], "counts": []}}
        opener.kafka.produce(topic, 0, Record(json.dumps(said).encode()))
        db.tick()
    assert rows(db, "SELECT * FROM reclock.translate('cdc', '0:1')") == [(89,)]
    assert rows(db, "SELECT * FROM reclock.translate('cdc', 80)") == [("0", 1)]


def test_every_kind_of_source_is_translated_in_both_directions(opener, tmp_path):
    """Now and AS OF; what a position is, and where parts have names, is the source's."""
    db = opener()
    lines = tmp_path / "lines.csv"
    lines.write_text("1\n2\n")
    db.execute("CREATE TABLE marks (timestamp BIGINT, partition TEXT, offset BIGINT)")
    db.execute("INSERT INTO marks VALUES (2000, 'lines.csv', 2), (9000, 'lines.csv', 2)")
    for name, rest in {
        "plain": "",
        "bound": f"RECLOCK USING marks WITH (epoch_ms_timeline = true, {KEPT})",
    }.items():
        options = rest or f"WITH ({KEPT})"
        db.execute(f"CREATE SOURCE {name} (k INT) FROM FILE '{lines}' FORMAT CSV {options}")
    db.execute(f"CREATE SOURCE made FROM LOAD GENERATOR COUNTER WITH ({KEPT})")
    for at in (2_000, 4_000):
        opener.clock.set(at)
        db.tick()
        with lines.open("a") as file:
            file.write("3\n")
    for name, later in {"plain": 3_000, "bound": 2_500, "made": 3_000}.items():
        offsets = rows(db, f"SELECT * FROM reclock.translate('{name}', {later})")
        assert offsets
        for part, offset in offsets:
            query = f"SELECT timestamp FROM reclock.translate('{name}', '{part}', {offset - 1})"
            ((time,),) = rows(db, query)
            assert rows(db, f"{query} AS OF {later}") == [(time,)]
            assert time <= later
            before, then = (
                dict(rows(db, f"SELECT * FROM reclock.translate('{name}', {at})")).get(part, 0)
                for at in (time - 1, time)
            )
            assert before <= offset - 1 < then
            found = f"SELECT timestamp, \"offset\" FROM reclock.bindings WHERE source = '{name}'"
            assert (time, then) in rows(db, found)

"""Statements about complete times: repetitions say nothing, contradictions are told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import ConflictingStatements, Error
from reclock.ingest.cdcv2 import closed_times
from reclock.ingest.cdcv2.closed_times import ClosedTimes


def updates(*rows):
    made = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in rows]
    return {"array": made}


def progress(lower, upper, *counts):
    made = [{"time": t, "count": n} for t, n in counts]
    return {"progress": {"lower": [lower], "upper": [upper], "counts": made}}


LATE = {
    "another row": (updates((2, "b", 3, 1)), "time 3 after it was complete"),
    "another diff": (updates((1, "a", 3, 2)), "time 3 after it was complete"),
    "a row of a time without any": (updates((1, "a", 4, 1)), "time 4 after it was complete"),
    "another count": (progress(3, 4, (3, 2)), "two counts are stated for time 3"),
    "no count": (progress(0, 5), "two counts are stated for time 3"),
    "a count of a time without any": (progress(4, 5, (4, 1)), "two counts are stated for time 4"),
    "with later times": (progress(2, 50, (3, 1), (4, 1)), "two counts are stated for time 4"),
}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("kind", LATE)
def test_contradictions_about_complete_times_end_the_source(feed, kind, dies):
    feed.create()
    feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 1)))
    feed.tick()
    if dies:
        feed.crash()
    message, said = LATE[kind]
    feed.send(message, partition=1)
    for _ in range(2):
        feed.tick()
        state, detail = feed.status()
        assert state == "failed"
        assert said in detail
        assert 'source "cdc", partition 1, offset 0' in detail
        with pytest.raises(Error, match="contradicts itself"):
            feed.rows("SELECT * FROM cdc")
        assert feed.rows("SELECT * FROM cdc AS OF 4") == [(1, "a")]
        feed.crash()
    assert feed.db.check() == []


def test_repetitions_of_complete_times_say_nothing(feed):
    feed.create()
    said = [updates((1, "a", 3, 1), (None, None, 3, 2)), progress(0, 5, (3, 2))]
    feed.send(*said)
    feed.tick()
    for _ in range(2):
        feed.send(*said, progress(2, 4, (3, 2)), updates((None, None, 3, 2)))
        feed.tick()
        assert feed.status() == ("running", None)
        feed.crash()
    feed.send(progress(0, 9, (3, 2)))
    feed.tick()
    assert feed.tick()["External(cdc)"] == 9


def test_only_so_much_is_remembered_and_what_cannot_be_checked_is_said(feed, monkeypatch, caplog):
    monkeypatch.setattr(closed_times, "TIMES", 3)
    feed.create()
    for time in range(10):
        feed.send(updates((1, "a", time, 1)), progress(time, time + 1, (time, 1)))
        feed.tick()
    feed.crash()
    feed.send(updates((2, "b", 3, 1)))  # long ago
    feed.tick()
    said = "1 late update was left out unchecked: complete times so old or large are not remembered"
    assert feed.status() == ("running", said)
    feed.send(updates((1, "a", 2, 1), (7, "c", 1, 1)), partition=1)
    feed.tick()
    assert feed.status()[1].startswith("3 late updates were left out unchecked")
    feed.send(progress(0, 5, (3, 7)), progress(3, 9, (8, 1), (4, 1), (7, 1)))
    feed.tick()
    assert feed.status()[1].startswith("3 late updates and 2 late counts were left out unchecked")
    assert caplog.messages == [f'source "cdc": {said}']  # once
    feed.send(updates((2, "b", 8, 1)))
    feed.tick()
    assert feed.status()[0] == "failed"


def test_kept_statements_that_contradict_end_their_source_alone(feed, monkeypatch):
    """What cannot be true when a database is opened is that source's failure; all else goes on."""
    feed.create()
    feed.db.execute("CREATE TABLE t (n INT)")
    feed.db.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM cdc")
    feed.db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(n) FROM t")
    feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 1)), progress(0, 9, (3, 1), (7, 1)))
    feed.tick()
    feed.db.execute("INSERT INTO t VALUES (1)")
    with monkeypatch.context() as patch:  # what was known of time 3 is lost
        patch.setattr(ClosedTimes, "restore", lambda self, _: setattr(self, "floor", 0))
        feed.crash()
    for _ in range(2):
        feed.db.execute("INSERT INTO t VALUES (2)")
        feed.tick(1_000)
        state, detail = feed.status()
        assert state == "failed"
        assert 'source "cdc" contradicts itself: two counts are stated for time 3' in detail
        assert "0 updates, with which it was complete, and 1" in detail
        told = feed.rows("SELECT code, detail FROM reclock.errors WHERE object = 'cdc'")
        assert [code for code, _ in told] == ["22000"]
        assert "drop the source" in told[0][1]
        with pytest.raises(Error, match="contradicts itself") as caught:
            feed.rows("SELECT * FROM m")
        assert caught.value.code == "22000"
        assert "drop the source" in caught.value.hint
        assert feed.rows("SELECT * FROM cdc AS OF 4") == [(1, "a")]
        feed.crash()
    assert feed.rows("SELECT * FROM v") == [(5,)]
    assert feed.db.check() == []


CLOSED = st.lists(st.lists(st.integers(-3, 3), max_size=3, unique=True), min_size=1, max_size=6)


@given(st.lists(CLOSED, max_size=5), st.integers(1, 4), st.integers(1, 6), st.booleans())
def test_what_is_remembered_is_what_was_closed(steps, times, most, dies):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed_times, "TIMES", times)
        patch.setattr(closed_times, "UPDATES", most)
        known, upper, said, durable = ClosedTimes(0), 0, {}, []
        for step in steps:
            said |= dict(enumerate(step, upper))
            every = [(t, h) for t, some in enumerate(step, upper) for h in some]
            news = known.news(*(np.array([e[n] for e in every], np.int64) for n in (0, 1)))
            for record in news.gone:
                durable.remove(record)
            durable += news.come
            known.settle(news)
            upper += len(step)
            assert len(durable) <= times + 1
            assert known.unchecked == 0
            if dies:
                known = ClosedTimes(upper)
                for record in reversed(durable):  # runs give them in batches, in any order
                    known.restore([record])
        for time in range(known.floor, upper):
            known.check_counts(time, time + 1, {time: len(said[time])} if said[time] else {})
            with pytest.raises(ConflictingStatements):
                known.check_counts(time, time + 1, {time: len(said[time]) + 1})
            for found in range(-3, 4):
                if found in said[time]:
                    known.check_update(time, found, None)
                elif len(said[time]) <= most:
                    with pytest.raises(ConflictingStatements):
                        known.check_update(time, found, None)
        large = sum(len(said[time]) for time in range(known.floor, upper) if len(said[time]) > most)
        assert known.unchecked == large
        for time in range(known.floor):
            known.check_update(time, 99, None)
        assert known.unchecked == large + known.floor

"""A tick that is durable though its append raised: what it published waits no longer (P2, P4).

The intake is told of a tick by the state that it left, and finds out by its upper and positions
which of the offers that ticks took it was, even if it has made another one since.
"""

from __future__ import annotations

import json

import pytest

from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

ANSWER = [(n,) for n in range(6)]


def _state(kafka, topic, *times, lower, upper):
    counts = [{"time": time, "count": 1} for time in times]
    said = [{"array": [{"data": {"n": n}, "time": n, "diff": 1}]} for n in times]
    said.append({"progress": {"lower": [lower], "upper": [upper], "counts": counts}})
    kafka.produce(topic, 0, *(Record(json.dumps(message).encode()) for message in said))


@pytest.mark.parametrize("again", [False, True])
def test_what_was_published_is_not_kept(opener, again):
    topic = opener.kafka.create_topic(1)
    db = opener()
    db.execute(
        f"CREATE SOURCE s (n BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
        "ENVELOPE MATERIALIZE"
    )
    _state(opener.kafka, topic, 0, 1, lower=0, upper=2)
    _state(opener.kafka, topic, 3, lower=3, upper=4)  # waits for time 2
    db.tick()
    _state(opener.kafka, topic, 2, lower=2, upper=3)
    _state(opener.kafka, topic, 5, lower=5, upper=6)  # waits for time 4

    (intake,) = [one for _, one in db._core.intakes._of(_pace(db))]

    def fail():
        if again:  # another offer takes the place of the one that is durable now
            _state(opener.kafka, topic, 4, lower=4, upper=5)
            intake.closable(db._core.world[_pace(db)], opener.clock.now_ms())
        message = "after the commit"
        raise FailpointRaised(message)

    with armed({"durable.commit.after": fail}), pytest.raises(Exception, match="after the commit"):
        db.tick()
    if not again:
        _state(opener.kafka, topic, 4, lower=4, upper=5)
    db.tick()
    db.tick()
    db.close()
    db = opener()
    assert sorted(db.execute("SELECT n FROM s AS OF AT LEAST 5").rows) == ANSWER
    (intake,) = [one for _, one in db._core.intakes._of(_pace(db))]
    assert intake.statements.waiting == 0


def _pace(db):
    return next(state.pace for state in db._core.world.timelines.values() if state.is_own)

"""Messages of CDCv2 that are wrong: told at once, with their place, and nothing silently stuck."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.cdcv2_codec import encode
from reclock.errors import Error
from strategies.changes import multiset_logs
from strategies.statements import deliveries

COLUMNS = "(id BIGINT NOT NULL, x TEXT)"


def updates(*rows):
    made = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in rows]
    return {"array": made}


def progress(lower, upper, *counts):
    made = [{"time": t, "count": n} for t, n in counts]
    end = [] if upper is None else [upper]
    return {"progress": {"lower": [lower], "upper": end, "counts": made}}


def errors(feed, name="cdc"):
    query = "SELECT timestamp, code, message FROM reclock.errors WHERE object = '{}'"
    return feed.rows(query.format(name))


BAD = {
    "a row that does not decode": updates(("not a number", "a", 5, 1)),
    "no JSON": b"garbage",
    "a diff of 0": updates((1, "a", 5, 0)),
    "no time": {"array": [{"data": {"id": 1, "x": "a"}, "diff": 1}]},
    "a time before 0": updates((1, "a", -1, 1)),
    "a time that is too great": updates((1, "a", 1 << 62, 1)),
    "a negative count": progress(5, 6, (5, -1)),
    "no time in between": progress(6, 5),
    "no interval": progress(5, 5),
    "a count of another time": progress(5, 6, (9, 1)),
    "a time that is counted twice": progress(5, 6, (5, 1), (5, 1)),
    "no counts": {"progress": {"lower": [5], "upper": [6]}},
    "a lower that is none": {"progress": {"lower": [], "upper": [6], "counts": []}},
    "both": {**updates((1, "a", 5, 1)), **progress(5, 6)},
    "neither": {},
    "a list": b"[]",
    "nothing": b"",
}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("late", [False, True], ids=["at first", "later"])
def test_what_is_wrong_is_told_at_once_with_its_place(feed, late, dies):
    sources = {f"s{n}": feed.kafka.create_topic(2) for n in range(len(BAD))}
    for (name, topic), bad in zip(sources.items(), BAD.values(), strict=True):
        feed.create(name, topic=topic)
        if late:
            feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 1)), topic=topic)
            feed.tick()
        feed.send(bad, partition=1, topic=topic)
    feed.tick()
    if dies:
        feed.crash()
        feed.tick()
    begun = 5 if late else 0
    for (name, topic), kind in zip(sources.items(), BAD, strict=True):
        place = f'source "{name}", partition 1, offset 0: '
        state, detail = feed.status(source=name)
        assert (state, detail[: len(place)]) == ("waiting", place), kind
        ((time, code, message),) = errors(feed, name)
        assert (time, code) == (begun, "22P04")
        assert message.startswith(place)
        if late:
            assert feed.rows(f"SELECT * FROM {name} AS OF 4") == [(1, "a")]
        feed.send(updates((2, "b", 5, 1)), progress(begun, 8, (5, 1)), topic=topic)
    feed.tick()
    for name in sources:
        with pytest.raises(Error, match=f'"{name}", partition 1, offset 0'):
            feed.rows(f"SELECT * FROM {name}")
        assert len(errors(feed, name)) == 1
        assert feed.status(source=name)[0] == "running"


def test_a_time_that_lacks_the_updates_of_a_bad_message(feed):
    feed.create()
    feed.send(progress(0, 5, (4, 2)), updates((1, "a", 4, 1)), updates(("?", "a", 4, 1)))
    feed.tick()
    feed.tick()
    state, detail = feed.status()
    assert state == "waiting"
    assert detail.startswith("time 4 lacks 1 of 2 updates")  # the fault is published: of time 1
    assert errors(feed)[0][2].startswith('source "cdc", partition 0, offset 2: ')
    feed.send(updates(("?", "b", 4, 1)))
    feed.tick()
    state, detail = feed.status()
    assert detail.startswith('source "cdc", partition 0, offset 3: ')
    assert "time 4 lacks 1 of 2 updates; 1 updates wait" in detail


def test_lines_of_files_have_their_names(feed, tmp_path):
    path = tmp_path / "changes.json"
    first = json.dumps(progress(0, 5)) + "\n"
    path.write_text(first + "garbage\n")
    feed.db.execute(
        f"CREATE SOURCE cdc {COLUMNS} FROM FILE '{path}' FORMAT JSON ENVELOPE MATERIALIZE"
    )
    feed.tick()
    (error,) = errors(feed)
    assert f"file changes.json, offset {len(first)}: " in error[2]
    with path.open("a") as file:
        file.write(json.dumps(progress(6, 5)) + "\n")
    feed.tick()
    place = f"file changes.json, offset {len(first) + 8}"
    assert f"{place}: its progress is wrong" in feed.status()[1]


def test_two_kinds_of_what_is_wrong(feed):
    feed.create()
    feed.send(b"garbage", b"more", updates((1, "a", 3, 1)))
    feed.tick()
    assert (
        "; 1 more records are wrong; no progress is stated for time 0; 1 updates"
        in (feed.status()[1])
    )
    assert len(errors(feed)) == 2


ENDS = {
    "more than counted": (
        [updates((1, "a", 5, 1), (2, "a", 5, 1)), progress(4, 6, (5, 1))],
        "more updates are stated for time 5 than are counted",
        "2 updates, counted 1",
    ),
    "two counts": (
        [progress(4, 6, (5, 1)), progress(5, 6, (5, 2))],
        "two counts are stated for time 5",
        '1 updates, and 2; source "cdc", partition 0, offset 3',
    ),
    "two diffs": (
        [updates((1, "a", 5, 1)), updates((1, "a", 5, 2)), progress(4, 6, (5, 2))],
        "two diffs are stated for the same data at time 5",
        "the data is (1, 'a')",
    ),
}


@pytest.mark.parametrize("kind", ENDS)
def test_an_error_that_ends_a_source_keeps_its_code_detail_and_hint(feed, kind):
    messages, said, facts = ENDS[kind]
    feed.create()
    feed.send(updates((1, "a", 3, 1)), progress(0, 4, (3, 1)))
    feed.tick()
    feed.db.execute("CREATE VIEW v AS SELECT id FROM cdc")
    feed.db.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM cdc")
    feed.send(*messages)
    feed.tick()
    for _ in range(2):
        for name in ("cdc", "v", "m"):
            with pytest.raises(Error) as caught:
                feed.rows(f"SELECT * FROM {name}")
            error = caught.value
            assert error.message == f'source "cdc" contradicts itself: {said}'
            assert (error.code, error.hint) == (
                "22000", "drop the source, and create it again when its sender is mended",
            )  # fmt: skip
            assert error.detail.startswith(facts)
        assert feed.status() == ("failed", f'source "cdc" contradicts itself: {said}: {facts}')
        assert [row[1:] for row in errors(feed)] == [
            ("22000", f'source "cdc" contradicts itself: {said}')
        ]
        feed.crash()
        feed.tick()
    with (
        pytest.raises(Error, match="contradicts itself") as caught,
        feed.db.subscribe("SUBSCRIBE TO cdc") as came,
    ):
        came.fetch(timeout=5)
    assert caught.value.detail.startswith(facts)


def test_a_topic_that_is_gone_says_so_for_ever(feed):
    feed.create()
    feed.send(updates((1, "a", 3, 1)), progress(0, 4, (3, 1)))
    feed.tick()
    feed.kafka.delete_topic(feed.topic)
    feed.tick()
    said = []
    for _ in range(2):
        with pytest.raises(Error) as caught:
            feed.rows("SELECT * FROM cdc")
        said.append((caught.value.code, caught.value.message, caught.value.hint))
        feed.crash()
        feed.tick()
    assert said[0] == said[1]
    assert said[0][0] == "55000"


def cut(text, data):
    return text[: data.draw(st.integers(0, len(text) - 1))]


def with_other(text, data):
    """Change a number, a bracket or a name of a message."""
    said = json.loads(text)
    inside = said.get("progress")
    if inside is not None:
        kind = data.draw(st.sampled_from(["lower", "upper", "counts", "turned"]))
        if kind == "turned":
            inside["lower"], inside["upper"] = inside["upper"] or [99], inside["lower"]
        elif kind == "counts":
            inside["counts"] = [*inside["counts"], {"time": 3, "count": -1}]
        else:
            del inside[kind]
    else:
        update = data.draw(st.sampled_from(said["array"]))
        update[data.draw(st.sampled_from(["time", "diff", "data"]))] = data.draw(
            st.sampled_from([None, "x", []])
        )
    return json.dumps(said)


DATA = st.fixed_dictionaries({"id": st.integers(0, 2), "x": st.none() | st.sampled_from("ab")})
FAULTS = {"cut": cut, "other": with_other, "garbage": lambda text, data: "}" + text}


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(deliveries(multiset_logs(DATA, max_size=6)), st.sampled_from([*FAULTS]), st.data())
def test_one_bad_message_is_told_whatever_else_comes(make_opener, make_feed, delivery, kind, data):
    """With its place, at once, through a restart; nothing is right that it was needed for."""
    feed = make_feed(make_opener())
    feed.create()
    texts = [encode(message) for message in delivery.messages]
    at = data.draw(st.integers(0, len(texts) - 1))
    texts[at] = FAULTS[kind](texts[at], data)
    restarts = data.draw(st.sets(st.integers(0, len(texts) - 1)))
    for n, text in enumerate(texts):
        feed.send(text.encode())
        feed.tick()
        if n in restarts:
            feed.crash()
            feed.tick()
        if feed.status("state") == ("complete",) and n < at:
            return  # it has ended: nothing is read any more
        if n >= at:
            place = f'source "cdc", partition 0, offset {at}: '
            assert place in [message[: len(place)] for _, _, message in errors(feed)]
    feed.tick()
    state, detail = feed.status()
    assert state in ("waiting", "running", "complete")
    assert (detail is None) == (state != "waiting")
    end = delivery.stream[-1].upper
    upper = feed.rows("SELECT upper FROM reclock.frontiers WHERE object = 'cdc'")[0][0]
    whole = end.is_closed if upper is None else not end.is_closed and upper >= int(end.element())
    assert whole or state == "waiting"
    assert feed.db.check() == []

"""A state that is older than its output, from a backup, writes nothing: it would write twice."""

from __future__ import annotations

import shutil

import pytest

from reclock.sinks.topics import NewTopic
from reclock.testing.kafka_upstream import Record

SOURCE = "CREATE SOURCE o (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC 'in' FORMAT JSON"
SINK = """
CREATE SINK s FROM o INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON ENVELOPE DEBEZIUM
WITH (reuse_topic = true)
"""


@pytest.fixture
def copied(bench, tmp_path):
    """A pipeline, and a copy of its state after one record."""
    bench.kafka.create(NewTopic("in"))
    bench.run(SOURCE, SINK)
    bench.kafka.produce("in", 0, Record(b'{"id": 1}'))
    bench.tick(2)
    bench.crash()
    shutil.copytree(bench.opener.path, tmp_path / "copy")
    return bench


def restore(bench, tmp_path):
    bench.opener.crash(bench.db)
    shutil.rmtree(bench.opener.path)
    shutil.copytree(tmp_path / "copy", bench.opener.path)
    bench.db = bench.opener()


def test_what_was_written_after_the_copy_is_not_written_again(copied, tmp_path):
    copied.kafka.produce("in", 0, Record(b'{"id": 2}'))
    copied.tick(3)
    before = copied.messages()
    assert len(before) == 2
    restore(copied, tmp_path)
    copied.tick(4)
    assert copied.messages() == before
    assert copied.status() == "failed"
    assert "not an older copy" in copied.status("detail")
    assert copied.rows("SELECT id FROM o") == [(1,), (2,)]


def test_a_copy_of_the_last_moment_goes_on(copied, tmp_path):
    restore(copied, tmp_path)
    copied.kafka.produce("in", 0, Record(b'{"id": 2}'))
    copied.tick(3)
    assert [m.value for m in copied.messages()] == [
        b'{"before":null,"after":{"id":1}}', b'{"before":null,"after":{"id":2}}'
    ]  # fmt: skip
    assert copied.status() == "running"

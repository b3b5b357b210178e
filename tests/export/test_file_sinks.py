"""Sinks into files: CDCv2 lines, appended by a process that may die at any byte."""

from __future__ import annotations

import json
import random

import pytest

from reclock.catalog.item import Sink
from reclock.errors import Error
from reclock.failpoints import FailpointRaised, armed
from reclock.sinks import files

COLUMNS = "(id BIGINT, x TEXT)"
KEPT = "RETAIN HISTORY FOR '1 h'"
KINDS = {"FILE": "out.json", "DIRECTORY": "out"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


class Desk:
    """A bench whose sink writes files, and who reads them."""

    def __init__(self, bench, path, kind):
        self.bench = bench
        self.kind = kind
        self.path = path / KINDS[kind]
        bench.run(f"CREATE TABLE t {COLUMNS} WITH ({KEPT})")

    def sink(self, rest=""):
        self.bench.run(
            f"CREATE SINK s FROM t INTO {self.kind} '{self.path}' FORMAT JSON "
            f"ENVELOPE MATERIALIZE {rest}"
        )
        (sink,) = self.bench.db._core.world.catalog.of_kind(Sink)
        self.begun = int(sink.as_of)

    def back(self, name="back"):
        """Make a source of what the sink wrote."""
        self.bench.run(
            f"CREATE SOURCE {name} {COLUMNS} FROM {self.kind} '{self.path}' FORMAT JSON "
            f"ENVELOPE MATERIALIZE WITH (epoch_ms_timeline = true, {KEPT})"
        )
        self.bench.tick()

    def files(self):
        if self.kind == "FILE":
            return [self.path]
        return sorted(file for file in self.path.iterdir() if not file.name.startswith("."))

    def lines(self):
        return [line for file in self.files() for line in file.read_bytes().splitlines()]

    def check(self, name="back"):
        """The source has at every time what the table has."""
        query = f"SELECT upper FROM reclock.frontiers WHERE object = '{name}'"
        (upper,) = self.bench.db.execute(query).rows[0]
        for time in range(self.begun, upper, 500):
            rows = self.bench.rows(f"SELECT * FROM t AS OF {time}")
            assert self.bench.rows(f"SELECT * FROM {name} AS OF {time}") == rows, time
        return upper


@pytest.fixture
def desk(bench, tmp_path, kind):
    return Desk(bench, tmp_path, kind)


CHANGES = (
    "INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, NULL)",
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET x = 'line\nbreak' WHERE id = 2",
    "INSERT INTO t VALUES (3, 'c')",
)


def change(desk, *statements):
    for statement in statements or CHANGES:
        desk.bench.run(statement)
        desk.bench.tick()


def test_what_it_wrote_comes_back_as_it_was_at_every_time(desk):
    desk.bench.run("INSERT INTO t VALUES (9, 'before')")
    desk.sink()
    change(desk)
    desk.back()
    assert desk.check() > 4_000
    assert desk.bench.rows("SELECT * FROM reclock.errors") == []


def test_without_a_snapshot_only_changes_are_written(desk):
    desk.bench.run("INSERT INTO t VALUES (9, 'before')")
    desk.bench.tick()
    desk.sink("WITH (snapshot = false)")
    change(desk, "INSERT INTO t VALUES (1, 'after')")
    desk.back()
    assert desk.bench.rows("SELECT * FROM back AS OF 3000") == [(1, "after")]


POINTS = (
    "sink.begin.before", "sink.produce.after", "sink.progress.before", "sink.commit.before",
    "sink.commit.after", "sink.report.before", "sink.hold.before",
)  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_every_step_repeats_at_most_and_loses_nothing(desk, point):
    """The process dies, or goes on: it must make no difference."""
    hits = []

    def fail():
        hits.append(point)
        raise FailpointRaised(point)

    desk.sink()
    desk.back()
    for statement in CHANGES[:2]:
        desk.bench.run(statement)
        with armed({point: fail}):
            desk.bench.tick()
        if desk.kind == "FILE":
            desk.bench.crash()
        desk.bench.tick()
    assert len(hits) >= 2
    assert desk.bench.status() == "running"
    desk.back("again")  # one that reads all of it, after the one that read on
    assert desk.check() == desk.check("again")


def test_a_reader_of_copies_in_any_order_has_the_collection(desk, tmp_path):
    """Whoever moves files may do so twice, in pieces, and out of order."""
    desk.sink()
    change(desk)
    desk.bench.tick(2)
    lines = desk.lines() * 2
    random.Random(7).shuffle(lines)
    (tmp_path / "moved").mkdir()
    for n in range(3):
        text = b"".join(line + b"\n" for line in lines[n::3])
        (tmp_path / "moved" / f"{n}.json").write_bytes(text)
    desk.kind, desk.path = "DIRECTORY", tmp_path / "moved"
    desk.back()
    assert desk.check() > 4_000


def test_a_directory_gets_one_file_after_another(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROLL", 300)
    desk = Desk(bench, tmp_path, "DIRECTORY")
    desk.sink()
    change(desk)
    assert len(desk.files()) > 1
    assert all(file.stat().st_size < 1_000 for file in desk.files())
    desk.back()
    desk.check()


def test_an_idle_sink_says_so_now_and_then(desk):
    desk.sink()
    change(desk, CHANGES[0])
    before = len(desk.lines())
    desk.bench.tick(25)
    assert before + 2 <= len(desk.lines()) <= before + 3
    assert all("progress" in json.loads(line) for line in desk.lines()[before:])


def test_a_place_with_output_is_refused_and_one_of_its_own_is_not(desk):
    desk.sink()
    change(desk, CHANGES[0])
    before = desk.lines()
    desk.bench.run("DROP SINK s")
    objects = desk.bench.rows("SHOW OBJECTS")
    with pytest.raises(Error, match="has output that this database did not write"):
        desk.sink()
    assert desk.bench.rows("SHOW OBJECTS") == objects
    desk.sink("ON ORPHAN USE NONCE")
    desk.bench.tick()
    assert desk.bench.status() == "running"
    assert desk.lines() == before


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("KEY (id) FORMAT JSON ENVELOPE UPSERT", "ENVELOPE UPSERT into files is not supported"),
        ("FORMAT JSON ENVELOPE DEBEZIUM", "ENVELOPE DEBEZIUM into files is not supported"),
        (
            "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://x' ENVELOPE MATERIALIZE",
            "FORMAT AVRO into files is not supported",
        ),
        (
            "FORMAT JSON ENVELOPE MATERIALIZE WITH (recover = true)",
            'option "recover" is not for a sink into files',
        ),
    ],
)
def test_what_files_cannot_have_is_refused(desk, rest, message):
    with pytest.raises(Error) as caught:
        desk.bench.run(f"CREATE SINK s FROM t INTO {desk.kind} '{desk.path}' {rest}")
    assert caught.value.message == message
    assert caught.value.hint
    assert not desk.path.exists()


def test_a_place_that_is_gone_stops_the_sink_and_nobody_else(desk):
    desk.sink()
    change(desk, CHANGES[0])
    for file in (*desk.files(), files.Place(desk.path, desk.kind == "DIRECTORY").progress):
        file.unlink()
    desk.bench.crash()
    change(desk, CHANGES[1])
    assert desk.bench.status() == "failed"
    assert "is less than it wrote" in desk.bench.status("detail")
    assert desk.bench.rows("SELECT * FROM t") == [(2, None)]


def test_progress_that_is_lost_is_made_up_for_by_repetition(desk):
    desk.sink()
    change(desk, CHANGES[0])
    desk.bench.crash()
    files.Place(desk.path, desk.kind == "DIRECTORY").progress.unlink()
    change(desk, CHANGES[1])
    assert desk.bench.status() == "running"
    desk.back()
    desk.check()

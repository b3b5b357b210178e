"""A subscription in a notebook, whose display is a fake."""

from __future__ import annotations

import sys
import threading
import types

import pytest

from reclock.engine.update import Update
from reclock.subscribe.notebook import LAST, Shown
from reclock.time.timestamp import Timestamp


class Cell:
    """What a cell shows; keeps what was shown before."""

    def __init__(self):
        self.seen = []
        self.changed = threading.Condition()

    def display(self, shown, *, display_id):
        assert display_id
        self.update(shown)
        return self

    def update(self, shown):
        with self.changed:
            self.seen.append(shown._repr_html_())
            self.changed.notify_all()

    def shows(self, text):
        with self.changed:
            assert self.changed.wait_for(lambda: text in self.seen[-1], 60), self.seen[-1]


@pytest.fixture
def cell(monkeypatch):
    cell = Cell()
    module = types.ModuleType("IPython.display")
    module.display = cell.display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return cell


def test_the_rows_that_are_there_and_change(opener, cell):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT, b TEXT)")
    db.execute("INSERT INTO t VALUES (2, '<b>'), (1, NULL)")
    changes = db.subscribe("SUBSCRIBE TO t")
    changes._ipython_display_()
    first, second = "<td>1</td><td><i>NULL</i></td>", "<td>2</td><td>&lt;b&gt;</td>"
    cell.shows(f"<table><tr><th>a</th><th>b</th></tr><tr>{first}</tr><tr>{second}</tr></table>")
    assert "2 rows, 2 changes at " in cell.seen[-1]
    opener.clock.advance(1_000)
    db.execute("DELETE FROM t WHERE a = 1")
    cell.shows(f"<table><tr><th>a</th><th>b</th></tr><tr>{second}</tr></table><p>1 rows, 3 changes")
    changes.close()
    cell.shows("; ended</p>")


def test_an_error_is_shown_where_the_rows_were(opener, cell):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    db.subscribe("SUBSCRIBE TO t")._ipython_display_()
    db.execute("DROP TABLE t")
    cell.shows("ERROR 42P01")


def test_without_a_snapshot_the_last_changes_are_shown(opener, cell):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    changes = db.subscribe("SUBSCRIBE TO t WITH (SNAPSHOT = false)")
    changes._ipython_display_()
    db.insert("t", [(n,) for n in range(LAST + 1)])
    cell.shows(f"<p>{LAST + 1} changes at ")
    shown = cell.seen[-1]
    assert "<th>mz_timestamp</th><th>mz_diff</th><th>a</th>" in shown
    assert shown.count("<tr>") == LAST + 1
    changes.close()


def test_rows_count_as_often_as_they_are_there():
    shown = Shown(("a",), accumulated=True)
    shown.add([(Update(Timestamp(1), 2, ([7],)), ()), (Update(Timestamp(2), -1, ([7],)), ())])
    shown.add([(Update(Timestamp(3), progressed=True), ())])
    assert shown._repr_html_() == (
        "<table><tr><th>a</th></tr><tr><td>[7]</td></tr></table><p>1 rows, 2 changes at 3</p>"
    )

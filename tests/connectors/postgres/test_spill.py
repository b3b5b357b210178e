"""Messages of a transaction in a file: given again in order, less what was rolled back."""

from __future__ import annotations

from struct import pack

import pytest

from reclock.connectors.postgres.pgoutput import Change, Relation, RelationColumn, Truncate
from reclock.connectors.postgres.rows import RowsBuilder
from reclock.connectors.postgres.spill import Spill
from reclock.connectors.postgres.table import Mapped, Table, TableColumn
from reclock.errors import SourceRegressed
from reclock.ingest.postgres.define import fields_of


def told(xid, letter, rest):
    return letter + pack("!I", xid) + rest


def insert(xid, text):
    return told(
        xid, b"I", pack("!I", 9) + b"N" + pack("!H", 1) + b"t" + pack("!I", len(text)) + text
    )


def test_what_was_rolled_back_is_left_out():
    spill = Spill(is_streamed=True)
    spill.add(1, insert(1, b"a"))
    spill.add(2, told(2, b"R", pack("!I", 9) + b"public\0t\0d" + pack("!H", 0)))
    spill.add(2, insert(2, b"b"))
    spill.add(3, insert(3, b"c"))
    spill.undo(2)
    found = list(spill.messages())
    assert [m.new for m in found if isinstance(m, Change)] == [(b"a",), (b"c",)]
    assert any(isinstance(m, Relation) for m in found), "the server says that once"
    assert list(spill.messages()) == found, "as often as it is asked for"
    assert spill.survey() == ({}, frozenset())
    spill.close()


def test_a_survey_says_what_is_truncated_and_what_is_left_out():
    spill = Spill(is_streamed=True)
    spill.add(1, insert(1, b"a"))
    spill.add(2, told(2, b"T", pack("!IBI", 1, 0, 9)))
    spill.add(1, told(1, b"T", pack("!IBI", 1, 0, 9)))
    spill.add(1, told(1, b"U", pack("!I", 8) + b"N" + pack("!H", 1) + b"u"))
    assert isinstance(list(spill.messages())[1], Truncate)
    assert spill.survey() == ({9: 2}, frozenset({8}))
    spill.undo(1)
    assert spill.survey() == ({9: 0}, frozenset())
    spill.close()


@pytest.mark.parametrize(
    "change", [Change(9, "U", None, (b"1",)), Change(9, "D", (b"1",), None, True)]
)
def test_a_row_that_the_log_does_not_name_is_a_lasting_error(change):
    table = Table(9, "public", "t", (TableColumn("n", 23, -1, 23),), (), "n")
    relation = Relation(9, "public", "t", "n", (RelationColumn("n", 23, -1, False),))
    builder = RowsBuilder(table, fields_of(table))
    with pytest.raises(SourceRegressed, match="the log does not say which"):
        builder.add(change, Mapped.of(table, fields_of(table), relation), 1, 1)

"""Changes that the log cannot name: what PostgreSQL refuses to write, but another log may have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reclock.connectors.format.decoder import Field
from reclock.connectors.postgres.pgoutput import Change, Relation, RelationColumn
from reclock.connectors.postgres.rows import RowsBuilder
from reclock.connectors.postgres.table import Mapped, Table, TableColumn
from reclock.errors import SourceRegressed
from reclock.sql import types as t

COLUMNS = (TableColumn("id", 23, -1, 23, number=1), TableColumn("n", 23, -1, 23, number=2))
FIELDS = tuple(Field(name, t.INTEGER, pa.int32(), nullable=True) for name in ("id", "n"))
CHANGES = [
    Change(1, "U", None, (b"1", b"2")),
    Change(1, "U", (b"1", None), (b"3", b"2"), is_key=True),
    Change(1, "D", (b"1", None), None, is_key=True),
    Change(1, "D", (b"1", b"2"), None),
]


def built(key, identity, change):
    table = Table(1, "public", "t", COLUMNS, key, "d")
    relation = Relation(
        1, "public", "t", identity, tuple(RelationColumn(c.name, 23, -1, False) for c in COLUMNS)
    )
    builder = RowsBuilder(table, FIELDS)
    builder.add(change, Mapped.of(table, FIELDS, relation), 10, 1)
    return builder.finish().records


@pytest.mark.parametrize("change", CHANGES)
def test_a_keyed_table_whose_identity_is_nothing_takes_additions_only(change):
    with pytest.raises(SourceRegressed, match=r"a row of table public.t was") as caught:
        built((0,), "n", change)
    assert caught.value.code == "55000"
    assert ("updated" in caught.value.message) == (change.kind == "U")
    assert built((0,), "n", Change(1, "I", None, (b"1", b"2"))).num_rows == 1


@pytest.mark.parametrize("change", [c for c in CHANGES if c.old is None or c.is_key])
def test_a_table_without_a_key_needs_whole_rows(change):
    with pytest.raises(SourceRegressed, match="the log does not say which"):
        built((), "d", change)

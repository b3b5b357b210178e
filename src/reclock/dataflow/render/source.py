"""Renders the envelope of a source as steps.

Records come in at an ``Input`` and pass the steps of the envelope; the rows of the last one
are kept as the collection of a view, their errors as its errors. So who reads a source reads
what is kept: records pass once, in the tick they are bound in, and are never had again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.envelope import DEBEZIUM, NONE, UPSERT, envelope_fields, input_types
from reclock.dataflow.graph import collection_of, faults_of, images_of, positions_of
from reclock.dataflow.operators.fresh import POSITIONS
from reclock.dataflow.operators.fresh import Fresh as FreshOperator
from reclock.dataflow.operators.images import Images as ImagesOperator
from reclock.dataflow.operators.upsert import Upsert as UpsertOperator
from reclock.dataflow.steps.debezium import Floor, Fresh, Images
from reclock.dataflow.steps.faults import Faults
from reclock.dataflow.steps.leaf import Input
from reclock.dataflow.steps.upsert import Upsert
from reclock.dataflow.types import arrow_types

if TYPE_CHECKING:
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.render.builder import Builder
    from reclock.ids import ObjectId
    from reclock.sql.schema import Schema


@dataclass(frozen=True, slots=True)
class Source:
    """An object whose records are read from outside.

    ``key`` is its primary key, empty if it has none; ``envelope`` is one of those in
    ``dataflow.envelope``. The last ``included`` columns tell of the record, not of the row.
    """

    schema: Schema
    key: tuple[int, ...]
    envelope: str
    included: int = 0


def render_source(builder: Builder, item: ObjectId, source: Source) -> None:
    """Keep the rows of a source, and its errors."""
    row = arrow_types(source.schema)
    whole = tuple(range(len(row)))
    name = f"source {item}"
    records = builder.step(Input(item, input_types(source.envelope, row)), name)
    if source.envelope == NONE:
        builder.source(item, records, source.key or whole)
        rows = builder.step(Faults(records, row), name)
    elif source.envelope == UPSERT:
        passing = builder.source(item, records, source.key)
        rows = _upsert(builder, item, source, records, passing)
    else:
        rows = _debezium(builder, item, source, records)
    builder.view(item, rows, source.key or whole)


def _debezium(builder: Builder, item: ObjectId, source: Source, records: int) -> int:
    row, name = arrow_types(source.schema), f"source {item}"
    names = [field.name for field in envelope_fields(DEBEZIUM, row)]
    passing = builder.source(item, records, (len(row) + names.index("partition"),))
    positions = builder.named_state(positions_of(item), POSITIONS)
    operator = FreshOperator(row, source.included)
    fresh = Fresh(records, passing, positions, operator, builder.types(records))
    images = Images(builder.step(fresh, name, positions), ImagesOperator(row, source.key))
    changes = builder.step(images, name)
    if source.key:
        passing = builder.passing(images_of(item), changes, source.key)
        return _upsert(builder, item, source, changes, passing)
    passing = builder.passing(images_of(item), changes, tuple(range(len(row))))
    collection = collection_of(item)
    return builder.step(Floor(changes, passing, collection, row), name, collection)


def _upsert(
    builder: Builder, item: ObjectId, source: Source, records: int, passing: ArrangementId
) -> int:
    names = tuple(source.schema[i].name for i in source.key)
    operator = UpsertOperator(arrow_types(source.schema), source.key, names)
    collection = collection_of(item)
    faults = builder.named_state(faults_of(item), operator.faults)
    step = Upsert(records, passing, collection, faults, operator)
    return builder.step(step, f"source {item}", collection, faults)

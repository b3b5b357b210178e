"""Which steps the envelope of a source becomes.

Records come in at an ``Input`` and pass the steps of the envelope; the rows of the last one
are kept as the collection of a view, their errors as its errors. So who reads a source reads
what is kept: records pass once, in the tick they are bound in, and are never had again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.dataflow.envelope import NONE, UPSERT, input_types
from reclock.dataflow.graph import collection_of, faults_of
from reclock.dataflow.operators.upsert import Upsert as UpsertOperator
from reclock.dataflow.steps.faults import Faults
from reclock.dataflow.steps.leaf import Input
from reclock.dataflow.steps.upsert import Upsert
from reclock.dataflow.types import arrow_types
from reclock.errors import NotSupported

if TYPE_CHECKING:
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.render.build import Source
    from reclock.dataflow.render.builder import Builder
    from reclock.ids import ObjectId


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
        message = f"the envelope {source.envelope} is not supported"
        raise NotSupported(message)
    builder.view(item, rows, source.key or whole)


def _upsert(
    builder: Builder, item: ObjectId, source: Source, records: int, passing: ArrangementId
) -> int:
    names = tuple(source.schema[i].name for i in source.key)
    operator = UpsertOperator(arrow_types(source.schema), source.key, names)
    collection = collection_of(item)
    faults = builder.named_state(faults_of(item), operator.faults)
    step = Upsert(records, passing, collection, faults, operator)
    return builder.step(step, f"source {item}", collection, faults)

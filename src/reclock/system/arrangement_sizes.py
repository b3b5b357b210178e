"""``reclock.arrangement_sizes``: what is stored, and for whom.

Each arrangement is shown once, though objects share them: under the object whose rows it
holds, else under the first object that needs it. So sums over the relation are what is
stored, but for runs that a view has in common with what it reads until either is merged: these
count for both. An index over columns that are arranged by anyway costs nothing and has no row.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reclock.arrangement.shard import count_from
from reclock.catalog.item import Index, number_of
from reclock.catalog.system_relation import Described, system_relation
from reclock.dataflow.graph import collection_of, errors_of
from reclock.ids import ObjectId
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reclock.catalog.system_relation import Row
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.system_moment import Moment
    from reclock.engine.timeline import TimelineState


def _rows(moment: Moment) -> Iterator[Row]:
    items = moment.world.items
    for state in moment.world.timelines.values():
        pending: Counter[str] = Counter()
        for entry in state.wal.pending:
            pending[collection_of(entry.table)] += entry.run.rows
        for arrangement, (owner, operator) in owners(state).items():
            refs = state.arrangements.runs[arrangement]
            records = sum(ref.rows for ref in refs)
            size = sum(ref.length for ref in refs)
            name = items[owner].name
            waiting = pending[arrangement] + _waiting(state, arrangement)
            yield name, operator, records, waiting, size, len(refs)


def _waiting(state: TimelineState, arrangement: ArrangementId) -> int:
    """Return how many updates of a temporal filter wait for their time."""
    if not state.shape.graph.arrangements[arrangement].pending:
        return 0
    return sum(count_from(run, state.upper) for run in state.traces[arrangement].runs)


def owners(state: TimelineState) -> Mapping[ArrangementId, tuple[ObjectId, str]]:
    """Return for each arrangement the object that it is shown under, and what it is to it."""
    graph = state.shape.graph
    found: dict[ArrangementId, tuple[ObjectId, str]] = {}
    for item in (*graph.tables, *graph.views):
        owner, _, inner = item.partition("!")
        kind = "import" if item in state.shape.imports else inner or "collection"
        if isinstance(state.shape.defined.get(item), Index):
            kind = "index"
        found[collection_of(item)] = ObjectId(owner), kind
        if errors_of(item) in graph.arrangements:
            found[errors_of(item)] = item, "errors"
    for item in sorted(
        state.shape.kept.keys() - graph.tables.keys() - graph.views.keys(), key=number_of
    ):
        for arrangement in state.shape.kept[item]:
            found.setdefault(arrangement, (item, "index"))
    for index, arrangement in state.shape.shadows.items():
        found.setdefault(arrangement, (index.on, "sink"))
    operators = {
        arrangement: type(graph.steps[step]).__name__.lower()
        for step, read in graph.reads.items()
        for arrangement in read
    }
    for item in sorted(graph.views, key=number_of):
        for arrangement in sorted(graph.state_of(item) - found.keys()):
            found[arrangement] = item, operators[arrangement]
    return found


ARRANGEMENT_SIZES = system_relation(
    "arrangement_sizes",
    "What is stored, each arrangement once, under the first object that needs it.",
    (
        Described("object", TEXT, "a table, source, materialized view or index"),
        Described(
            "operator",
            TEXT,
            "`collection`: its rows; `errors`: its errors; `index`; `sink`: its rows by the key "
            "of a sink; else the operator whose state it is: `join`, `accumulate`, …",
        ),
        Described("records", BIGINT, "updates in its runs"),
        Described(
            "pending",
            BIGINT,
            "updates at times that are not complete, which wait: writes to a table that no tick "
            "has taken yet, or those of the records of a temporal filter whose time has not come",
        ),
        Described(
            "bytes", BIGINT, "size of its runs, also of those it has in common with what it reads"
        ),
        Described("runs", BIGINT, "runs that it is made of"),
    ),
    _rows,
)

"""ALTER SINK … SET FROM: a sink continues with another relation from some time on.

Definition. At S, the first time that is not complete when the statement is run, the sink writes the
difference between the old relation's rows at S − 1 and the new one's at S; before S it writes the
changes of the old one, after S those of the new one. S is part of the sink's durable record, in the
same append that gives it the new relation, so it depends neither on the sink's progress nor on
crashes: a sink that lags writes what the old relation had up to S first (``changes``).

The old relation stays what the sink depends on, and holds, until S is written: ``settled`` is the
sink without it. Several changes may wait, one after the other.

Columns must be alike: the same names and types in the same order, and in Avro, whose schema says
it, the same of them may be NULL. A key that is enforced must be unique in the new relation too.

Tests: tests/export/test_alter.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from reclock.catalog.item import RelationItem, Sink
from reclock.errors import InvalidDefinition, TimelineMismatch
from reclock.export.define import define_sink, key_of, relation_of, relations_of
from reclock.sql.parse.connectors import with_relation
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.ids import ObjectId
    from reclock.sql.schema import Column
    from reclock.time.timestamp import Timestamp


def check_alike(sink: Sink, relation: RelationItem, catalog: Catalog) -> None:
    """Refuse a relation that the topic of a sink cannot go on with."""
    if catalog.paces[relation.id] != catalog.paces[sink.relation]:
        message = f'sink "{sink.name}" cannot be made of "{relation.name}": its times are others'
        detail = (
            f"the sink is in {catalog.paces[sink.relation]}, "
            f"the relation in {catalog.paces[relation.id]}"
        )
        raise TimelineMismatch(message, detail=detail, hint="create another sink")
    old = catalog[sink.relation]
    assert isinstance(old, RelationItem)
    strict = sink.statement.format.kind == "avro"
    for was, now in zip_longest(old.schema.columns, relation.schema.columns):
        differs = _difference(was, now, strict=strict)
        if differs is not None:
            message = f'sink "{sink.name}" cannot be made of "{relation.name}": {differs}'
            hint = "create a materialized view with the columns of the sink and use that"
            raise InvalidDefinition(message, detail=f'it is made of "{old.name}"', hint=hint)
    key_of(sink.statement, relation)


def check_rows(sink: Sink, before: Catalog, after: Catalog) -> None:
    """Refuse a change of the relations of a sink that its messages cannot go on with.

    Their columns have the names and types that they had.
    """
    for phase in sink.phases:
        old, new = before[phase.relation], after[phase.relation]
        assert isinstance(old, RelationItem)
        assert isinstance(new, RelationItem)
        relation = relation_of(Name((new.name,)), after)
        strict = sink.statement.format.kind == "avro"
        pairs = zip(old.schema.columns, new.schema.columns, strict=True)
        said = next(filter(None, (_difference(*pair, strict=strict) for pair in pairs)), None)
        if said is None and key_of(sink.statement, relation).shadow not in ((), sink.shadow):
            said = f"KEY ({', '.join(sink.statement.key)}) may not be unique any more"
        if said is not None:
            message = f'sink "{sink.name}" cannot go on with {new}: {said}'
            hint = "let the query have the columns and the key that it had, or DROP the sink first"
            raise InvalidDefinition(message, hint=hint)


def _difference(was: Column | None, now: Column | None, *, strict: bool) -> str | None:
    """Say in what a column is not what it was; None if it is."""
    if now is None:
        assert was is not None
        return f'it has no column "{was.name}"'
    if was is None:
        return f'column "{now.name}" is one too many'
    if was.name != now.name:
        return f'column "{now.name}" is where "{was.name}" has to be'
    if was.type != now.type:
        return f'column "{now.name}" is of type {now.type}, not {was.type}'
    if strict and was.nullable != now.nullable:
        return f'column "{now.name}" may {"" if now.nullable else "not "}be NULL'
    return None


def altered(sink: Sink, relation: RelationItem, time: Timestamp, catalog: Catalog) -> Sink:
    """Return the sink made of another relation from ``time`` on."""
    last = sink.phases[-1]
    past = list(sink.facts.get("past", ()))
    if last.start < time:  # else no time of it has come
        past.append([last.relation, int(time)])
    return _with_past(sink, past, relation, catalog)


def settled(catalog: Catalog, item: ObjectId, frontier: Timestamp) -> Sink | None:
    """Return a sink without what it was made of before, up to ``frontier``; None: it has no such.

    What is written has no need of it any more.
    """
    sink = catalog.items.get(item)
    if not isinstance(sink, Sink):
        return None
    past = sink.facts.get("past", [])
    left = [[relation, until] for relation, until in past if until >= frontier]
    if len(left) == len(past):
        return None
    relation = catalog[sink.relation]
    assert isinstance(relation, RelationItem)
    return _with_past(sink, left, relation, catalog)


def _with_past(sink: Sink, past: list[list[Any]], relation: RelationItem, catalog: Catalog) -> Sink:
    """Return the sink of a relation, with others before it."""
    facts = {name: fact for name, fact in sink.facts.items() if name != "past"}
    if past:
        facts["past"] = past
    relations = [*relations_of(facts, catalog), relation]
    sql = with_relation(sink.sql, relation.name)
    statement = replace(sink.statement, relation=Name((relation.name,)))
    return define_sink(statement, sql, sink.id, relations, facts, linked=sink.linked)

"""Project, Filter and FlatMap: expressions over one row, which raise for a row without a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.spark.batch.relation import Relation, checked, failing, named, select, staged
from reclock.sql.plan.spark_text import compile_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.spark.batch.relation import NewPart
    from reclock.sql.plan.relation import FlatMap, Project
    from reclock.sql.plan.scalar import Scalar


def project(node: Project, over: Relation, part: NewPart) -> Relation:
    """Return the outputs of each row."""
    scalars = [scalar for _, scalar in node.outputs]
    kinds = tuple(scalar.type for scalar in scalars)
    made = compile_scalars(scalars, over.columns.names)
    items = [*named(made.values), *over.carried]
    if made.error is not None:
        source = failing(staged(over, made, part), made.error)
        return Relation(select(items, source, checked("bad")), kinds, over.counted)
    if made.stages:
        return Relation(select(items, staged(over, made, part)), kinds, over.counted)
    text = over.select(items)
    return Relation(text, kinds, over.counted)


def filtered(predicates: Sequence[Scalar], over: Relation, part: NewPart) -> Relation:
    """Return the rows for which all predicates are true, tried from left to right.

    A predicate sees only rows for which all before it are true, so its errors count for
    those alone.
    """
    plain: list[str] = []
    for predicate in predicates:
        made = compile_scalars([predicate], over.columns.names)
        if not made.stages and made.error is None:
            plain.append(made.values[0])
            continue
        over = _where(over, plain)
        plain = []
        source = staged(over, made, part)
        condition = made.values[0]
        if made.error is not None:
            source = failing(source, made.error)
            condition = checked("bad", condition)
        text = select([*over.names, *over.carried], source, condition)
        over = Relation(text, over.kinds, over.counted)
    return _where(over, plain)


def _where(over: Relation, conditions: list[str]) -> Relation:
    if not conditions:
        return over
    condition = " AND ".join(conditions)
    text = select([*over.names, *over.carried], over.source, condition)
    return Relation(text, over.kinds, over.counted, passing=(over.source, condition))


def flat_map(node: FlatMap, over: Relation, part: NewPart) -> Relation:
    """Return each row once per element of its array."""
    made = compile_scalars([node.array], over.columns.names)
    kinds = tuple(c.type for c in node.schema)
    source = f"({select(['*', f'{made.values[0]} AS list'], staged(over, made, part))})"
    if made.error is not None:
        source = f"(SELECT * FROM {failing(source, made.error)} WHERE {checked('bad')})"
    width = len(over.kinds)
    items = [*over.columns.names, f"item AS c{width}"]
    if node.ordinality:
        items.append(f"CAST(place + 1 AS BIGINT) AS c{width + 1}")
    view = f"{source} LATERAL VIEW posexplode(list) x AS place, item"
    return Relation(select([*items, *over.carried], view), kinds, over.counted)

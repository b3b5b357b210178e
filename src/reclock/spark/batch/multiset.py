"""Union, Negate and Threshold: sums of multisets, by counts where something is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.spark.batch.relation import Relation, select

if TYPE_CHECKING:
    from collections.abc import Sequence


def union(members: Sequence[Relation]) -> Relation:
    """Return all rows of all members."""
    counted = any(member.counted for member in members)
    parts = [member.counting() if counted else member for member in members]
    text = " UNION ALL ".join(f"SELECT * FROM {part.source}" for part in parts)
    return Relation(text, members[0].kinds, counted)


def negate(over: Relation) -> Relation:
    """Return the rows with opposite counts."""
    counted = over.counting()
    text = select([*counted.names, "-n AS n"], counted.source)
    return Relation(text, over.kinds, counted=True)


def threshold(over: Relation) -> Relation:
    """Return the rows whose count is positive."""
    return over.netted("n > 0") if over.counted else over

"""A relation as Spark SQL: a SELECT of columns ``c0, …``, perhaps counted.

Definition. ``text`` selects exactly ``names``: one column per column of the plan (for a
relation of no columns the column ``z``, since SQL cannot say it), and if ``counted`` a
column ``n`` after them. Uncounted, the relation is the multiset of its rows. Counted, each
row stands for ``n`` of it, and equal rows add up; ``n`` may be negative. Only what is above
a Negate is counted, so ordinary queries carry no counts.

``netted`` adds up equal rows; ``expanded`` makes a counted relation an uncounted one, and
raises 22000 if a row is there a negative number of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from reclock.spark.columns import Columns
from reclock.sql.plan.spark_literal import quote_string

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reclock.sql.plan.spark_text import SparkScalars
    from reclock.sql.types import Type

NewPart: TypeAlias = "Callable[[str], str]"
"""Makes a part of a SELECT, and returns its name."""

LEVELS: Final = 16
"""Of more SELECTs than this, one within the other, those inside are a part of their own.

Spark looks at all of a text again for each level, and has no room for hundreds of them.
"""

APART: Final = 4
"""Spark may write out columns of so many stages in those above."""

_NEGATIVE = quote_string("22000|more of a row was taken away than was there")


@dataclass(frozen=True)
class Relation:
    """A SELECT and what comes out of it."""

    text: str
    kinds: tuple[Type, ...]
    counted: bool = False
    table: str | None = None
    """The name of a table of exactly these columns, if there is one."""
    passing: tuple[str, str] | None = None
    """What ``text`` selects from and the condition, if that is all it does."""

    @cached_property
    def columns(self) -> Columns:
        """The columns of the plan, by position."""
        return Columns(tuple(f"c{i}" for i in range(len(self.kinds))), self.kinds)

    @property
    def names(self) -> list[str]:
        """What is selected, without the count."""
        return list(self.columns.names) or ["z"]

    @property
    def source(self) -> str:
        """The relation as it stands after FROM."""
        return self.table or f"({self.text})"

    @property
    def carried(self) -> list[str]:
        """The count, if there is one, to be selected along."""
        return ["n"] if self.counted else []

    def select(self, items: Iterable[str]) -> str:
        """Return a SELECT from the relation, in one level with its condition if it can be."""
        return select(items, *(self.passing or (self.source,)))

    def counting(self) -> Relation:
        """Return the relation with counts."""
        if self.counted:
            return self
        text = self.select([*self.names, "1L AS n"])
        return Relation(text, self.kinds, counted=True)

    def netted(self, condition: str = "n <> 0") -> Relation:
        """Return one row per distinct row, with its count, for counts of this condition."""
        names = ", ".join(self.names)
        total = f"SELECT {names}, sum(n) AS n FROM {self.counting().source} GROUP BY {names}"
        return Relation(f"SELECT * FROM ({total}) WHERE {condition}", self.kinds, counted=True)

    def expanded(self) -> Relation:
        """Return the relation without counts."""
        if not self.counted:
            return self
        bad = f"CASE WHEN n < 0 THEN {_NEGATIVE} END"
        net = guarded(self.netted(), bad)
        view = f"{net.source} LATERAL VIEW explode(array_repeat(true, CAST(n AS INT))) x AS once"
        return Relation(select(self.names, view), self.kinds)


def select(items: Iterable[str], source: str, where: str | None = None) -> str:
    """Return a SELECT.

    >>> select(["c1 AS c0"], "t", "c0 > 1")
    'SELECT c1 AS c0 FROM t WHERE c0 > 1'
    """
    text = f"SELECT {', '.join(items)} FROM {source}"
    return text if where is None else f"{text} WHERE {where}"


def named(texts: Sequence[str]) -> list[str]:
    """Return the texts as columns ``c0, c1, …``; as the column ``z`` if there are none."""
    return [f"{text} AS c{i}" for i, text in enumerate(texts)] or ["true AS z"]


def staged(relation: Relation, scalars: SparkScalars, part: NewPart) -> str:
    """Return the relation, as it stands after FROM, with the columns that ``scalars`` need.

    A condition above is tried here, and not below: by the columns of these, or by their errors.
    """
    source = relation.source
    last = len(scalars.stages) - 1
    for at, (stage, kept) in enumerate(zip(scalars.stages, scalars.kept, strict=True)):
        if at and at % LEVELS == 0:
            source = part(select([*relation.names, *relation.carried, *kept], source))
        apart = scalars.error is None and (last - at) % APART == 0
        added = [f"{settled(text) if apart else text} AS {name}" for name, text in stage]
        source = f"({select(['*', *added], source)})"
    return source


def checked(error: str, then: str = "true") -> str:
    """Return a condition that raises ``error`` where it is not NULL, else is ``then``.

    The number of the partition makes the condition one that Spark must not move, so errors
    count for exactly the rows that come here: not for those that are filtered out earlier
    or find no partner, and not for fewer because a column is not read later.
    """
    raised = f"CAST(raise_error({error}) AS BOOLEAN)"
    return (
        f"CASE WHEN {error} IS NOT NULL THEN {raised} ELSE {then} AND spark_partition_id() >= 0 END"
    )


def failing(source: str, error: str) -> str:
    """Return ``source``, as it stands after FROM, with the error of each row as ``bad``."""
    return f"(SELECT *, {settled(error)} AS bad FROM {source})"


def settled(text: str) -> str:
    """Return text for a column that Spark does not write out where it is used.

    It would, in every condition that it tries earlier: twice what is used twice, and so at every
    level below. What depends on the number of the partition it must leave where it is.
    """
    return f"CASE WHEN spark_partition_id() >= 0 THEN {text} END"


def guarded(relation: Relation, error: str) -> Relation:
    """Return the relation, which raises the error of the first row that has one."""
    text = select([*relation.names, *relation.carried], relation.source, checked(error))
    return Relation(text, relation.kinds, relation.counted)

"""System relations: described columns, and rows as of a moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from reclock.catalog.item import RelationItem
from reclock.ids import ObjectId
from reclock.sql.names import CatalogItem
from reclock.sql.schema import Column, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reclock.sql.types import Type
    from reclock.time.frontier import Frontier

    Rows = Callable[[Any], Iterable["Row"]]
    """The rows at a moment (``engine.system_moment``), of which the catalog knows nothing."""

SCHEMA: Final = "reclock"

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """A column and what it means; the meaning of NULL is said, or there is none."""

    name: str
    type: Type
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class SystemRelation(RelationItem):
    """A relation whose rows the system makes; it stores nothing and has no timeline."""

    kind: ClassVar[str] = "system relation"
    keeps_state: ClassVar[bool] = False

    meaning: str = field(kw_only=True)
    columns: tuple[Described, ...] = field(kw_only=True)
    rows: Rows = field(kw_only=True, compare=False)
    private: bool = field(kw_only=True, default=False)
    """Whether it may show what is in rows, and so is not for everybody."""

    @cached_property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(tuple(Column(c.name, c.type, c.nullable) for c in self.columns))

    def relation(self) -> CatalogItem:
        """Return what planning sees of it."""
        return CatalogItem(self.id, self.name, self.kind, self.schema)


def system_relation(
    name: str,
    meaning: str,
    columns: tuple[Described, ...],
    rows: Rows,
    *,
    private: bool = False,
) -> SystemRelation:
    """Return the relation ``reclock.<name>``."""
    full = f"{SCHEMA}.{name}"
    return SystemRelation(
        ObjectId(full), full, "", None,
        meaning=meaning, columns=columns, rows=rows, private=private,
    )  # fmt: skip


def time_or_null(frontier: Frontier) -> int | None:
    """Return a frontier as a column has it: NULL is closed."""
    return None if frontier.is_closed else int(frontier.element())


def no_rows(moment: object) -> Iterable[Row]:
    """Return the rows of a relation about what does not exist yet."""
    del moment
    return ()

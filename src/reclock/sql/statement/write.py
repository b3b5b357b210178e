"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE.

``common`` is what WITH before the statement names; ``returning`` what it gives back of each row,
nothing if it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression, Name
    from reclock.sql.syntax.query import CommonTable, FromItem, Query, SelectItem


@dataclass(frozen=True, slots=True)
class Assignments:
    """``SET column = expression, (a, b) = (SELECT …), …``; ``rows`` are those of queries."""

    values: tuple[tuple[str, Expression], ...] = ()
    rows: tuple[tuple[tuple[str, ...], Query], ...] = ()


@dataclass(frozen=True, slots=True)
class OnConflict:
    """``ON CONFLICT [(columns) | ON CONSTRAINT name] DO NOTHING | DO UPDATE SET … [WHERE …]``.

    Without ``assignments`` it is DO NOTHING.
    """

    columns: tuple[str, ...] = ()
    constraint: str | None = None
    assignments: Assignments | None = None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """``INSERT INTO name [AS alias] [(columns)] query [ON CONFLICT …] [RETURNING …]``.

    DEFAULT may stand in VALUES; ``query`` None is ``DEFAULT VALUES``. ``overriding`` is ``system``
    or ``user`` if OVERRIDING … VALUE says so: identity columns take what is given, or never do.
    """

    name: Name
    columns: tuple[str, ...]
    query: Query | None
    alias: str | None = None
    conflict: OnConflict | None = None
    returning: tuple[SelectItem, ...] = ()
    common: tuple[CommonTable, ...] = ()
    overriding: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE name [AS alias] SET … [FROM source] [WHERE …] [RETURNING …]``."""

    name: Name
    alias: str | None
    assignments: Assignments
    where: Expression | None
    source: FromItem | None = None
    returning: tuple[SelectItem, ...] = ()
    common: tuple[CommonTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM name [AS alias] [USING source] [WHERE …] [RETURNING …]``."""

    name: Name
    alias: str | None
    where: Expression | None
    source: FromItem | None = None
    returning: tuple[SelectItem, ...] = ()
    common: tuple[CommonTable, ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """``WHEN [NOT] MATCHED [BY SOURCE | BY TARGET] [AND condition] THEN action``.

    ``case`` is matched, source (not matched by it) or target; ``action`` insert, update, delete or
    nothing. ``columns`` and ``values`` are those of INSERT; no values are DEFAULT VALUES.
    """

    case: str
    condition: Expression | None
    action: str
    assignments: Assignments
    columns: tuple[str, ...] = ()
    values: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """``MERGE INTO name [AS alias] USING source ON condition WHEN … [RETURNING …]``."""

    name: Name
    alias: str | None
    source: FromItem
    on: Expression
    whens: tuple[When, ...]
    returning: tuple[SelectItem, ...] = ()
    common: tuple[CommonTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncate:
    """``TRUNCATE [TABLE] [ONLY] names [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]``."""

    names: tuple[Name, ...]
    restart: bool = False
    """RESTART IDENTITY: sequences of the tables begin again."""

"""COPY … TO STDOUT, COPY … FROM STDIN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.catalog_query import CatalogQuery
    from reclock.sql.statement.select import SelectStatement
    from reclock.sql.statement.subscribe import Subscribe
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """How values are written; what is not said is what PostgreSQL has for the format."""

    name: str = "text"
    """``text``, ``csv`` or ``binary``."""
    delimiter: str = "\t"
    null: str = "\\N"
    header: str = "off"
    """``off``, ``on`` or ``match``."""
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = ()
    """None is all columns."""
    force_null: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()
    default: str | None = None
    """What stands for the default of a column; None is nothing."""


@dataclass(frozen=True, slots=True)
class Copy:
    """``COPY (SELECT … | SUBSCRIBE …) TO STDOUT [WITH (…)]``.

    ``COPY object [(columns)] TO STDOUT`` is one of a SELECT.
    """

    of: SelectStatement | CatalogQuery | Subscribe
    format: CopyFormat = CopyFormat()


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """``COPY table [(columns)] FROM STDIN [WITH (…)]``."""

    name: Name
    columns: tuple[str, ...] = ()
    format: CopyFormat = CopyFormat()

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
class Copy:
    """``COPY (SELECT … | SUBSCRIBE …) TO STDOUT`` in PostgreSQL's text format.

    ``COPY object [(columns)] TO STDOUT`` is one of a SELECT.
    """

    of: SelectStatement | CatalogQuery | Subscribe


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """``COPY table [(columns)] FROM STDIN`` in PostgreSQL's text format."""

    name: Name
    columns: tuple[str, ...] = ()

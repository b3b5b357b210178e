"""COPY … TO STDOUT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.select import SelectStatement
    from reclock.sql.statement.subscribe import Subscribe


@dataclass(frozen=True, slots=True)
class Copy:
    """``COPY (SELECT … | SUBSCRIBE …) TO STDOUT`` in PostgreSQL's text format."""

    of: SelectStatement | Subscribe

"""SUBSCRIBE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.select import AsOf
    from reclock.sql.syntax.expression import Name, Parameter, SortItem
    from reclock.sql.syntax.query import Query


@dataclass(frozen=True, slots=True)
class SubscribeEnvelope:
    """``ENVELOPE UPSERT (KEY (…))`` or ``ENVELOPE DEBEZIUM (KEY (…))``."""

    kind: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Follow the changes of an object or a query.

    ``SUBSCRIBE [TO] object | (query) [WITH (SNAPSHOT [= b], PROGRESS [= b])] [AS OF t]
    [UP TO t] [ENVELOPE …] [WITHIN TIMESTAMP ORDER BY …]``; exactly one of ``relation`` and
    ``query`` is set.
    """

    relation: Name | None
    query: Query | None
    snapshot: bool = True
    progress: bool = False
    as_of: AsOf | None = None
    up_to: int | str | Parameter | None = None
    envelope: SubscribeEnvelope | None = None
    order_within: tuple[SortItem, ...] = ()

"""Queries over PostgreSQL's catalog: what sessions ask of the package that answers them.

It is part of the server, above sessions, and brings DuckDB; it is loaded by its name.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.session.answer import Answer
    from reclock.sql.schema import Schema
    from reclock.sql.statement import CatalogQuery
    from reclock.sql.types import Type

_ANSWERED_BY: Final = "reclock.server.pg_catalog.answer"


C_contra = TypeVar("C_contra", contravariant=True)
"""What a statement runs in (``statements.context``), which knows this module."""


class CatalogQueries(Protocol[C_contra]):
    """Answers queries over PostgreSQL's catalog."""

    def types(self, query: CatalogQuery, declared: Sequence[Type]) -> tuple[Type, ...]:
        """Return the types of parameters: as declared, as the text wants them, else text."""
        ...

    def schema(self, context: C_contra, query: CatalogQuery, types: Sequence[Type]) -> Schema:
        """Return the columns of a query, without answering it."""
        ...

    def answer(self, context: C_contra, query: CatalogQuery) -> Answer:
        """Answer a query."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def catalog_queries() -> CatalogQueries[Any]:
    """Return what answers them."""
    made: CatalogQueries[Any] = import_module(_ANSWERED_BY).PgAnswers()
    return made

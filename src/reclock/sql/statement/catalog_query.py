"""A query over PostgreSQL's catalog."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """``SELECT … FROM pg_catalog.…``: as DuckDB's text, and what that needs.

    ``relations`` are called by schema and name, ``macros`` by name. ``session`` are what the
    session is asked for, a setting as ``setting:name``; the text has them as ``$s1``, ``$s2``, ….
    Parameters are ``$p1``, …; their types are those that the text wants, unknown if none.
    ``special`` are names of outputs that are of the type ``"char"`` if they are text, or a
    ``vector`` if they are an array. ``effects`` are outputs that are numbers of sessions, to which
    a function does something.
    """

    text: str
    relations: frozenset[tuple[str, str]] = frozenset()
    macros: frozenset[str] = frozenset()
    session: tuple[str, ...] = ()
    parameters: tuple[Type, ...] = ()
    special: Mapping[str, str] = field(default_factory=dict)
    effects: Mapping[str, str] = field(default_factory=dict)

"""Queries over PostgreSQL's catalog: what they take and give, and their answers.

A query is answered from one version of the catalog: the latest, or that of the transaction. In
``pg_catalog`` whoever may log in sees what there is, which has no secrets; in
``information_schema`` he sees what he may use, as in PostgreSQL.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reclock.catalog.client_settings import CLIENT_SETTINGS
from reclock.catalog.settings import SETTINGS
from reclock.dataflow.values import from_python
from reclock.engine.read import read_time
from reclock.errors import UndefinedName
from reclock.interval import Interval
from reclock.server.pg_catalog.bounded import bounded
from reclock.server.pg_catalog.catalogs import PgCatalogs
from reclock.server.pg_catalog.objects import Viewer
from reclock.session.answer import Answer
from reclock.session.backends import Reach
from reclock.session.functions import SESSION_FUNCTIONS
from reclock.sql.pg.relations import INFORMATION_SCHEMA, PG_CATALOG
from reclock.sql.pg.types import type_of_storage
from reclock.sql.plan.build.parameter import Typed
from reclock.sql.schema import Column, Schema
from reclock.sql.types import (
    BOOLEAN,
    CHAR,
    INT2VECTOR,
    INTEGERS,
    INTERVAL,
    OID,
    OIDVECTOR,
    SMALLINT,
    TEXT,
    UNKNOWN,
    Array,
    Numeric,
    Type,
)
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from reclock.engine.world import World
    from reclock.session.conversation import Conversation
    from reclock.session.statements.context import Context
    from reclock.sql.statement import CatalogQuery

_VECTORS: Final[dict[Type, Type]] = {SMALLINT: INT2VECTOR, OID: OIDVECTOR}
_SYNONYMS: Final = {
    "current_catalog": "current_database",
    "current_role": "current_user",
    "user": "current_user",
}


class PgAnswers:
    """``catalog_queries.CatalogQueries``, by an embedded DuckDB."""

    def __init__(self) -> None:
        self._catalogs = PgCatalogs()

    def types(self, query: CatalogQuery, declared: Sequence[Type]) -> tuple[Type, ...]:
        """Return the types of parameters: as declared, as the text wants them, else text."""
        count = max(len(declared), len(query.parameters))
        wanted = [*query.parameters, *[UNKNOWN] * count][:count]
        given = [*declared, *[UNKNOWN] * count][:count]
        found = (a if b == UNKNOWN else b for a, b in zip(wanted, given, strict=True))
        return tuple(TEXT if kind == UNKNOWN else kind for kind in found)

    def schema(self, context: Context, query: CatalogQuery, types: Sequence[Type]) -> Schema:
        """Return the columns of a query over the catalog, without answering it."""
        examples = [_example(kind) for kind in types]
        with _asked(self._catalogs, context, query, examples) as (relation, _):
            return _schema(relation, query)

    def answer(self, context: Context, query: CatalogQuery) -> Answer:
        """Answer a query over the catalog."""
        values = [_plain(value) for value in context.parameters]
        if len(values) < len(query.parameters):
            message = f"there is no parameter ${len(values) + 1}"
            raise UndefinedName(message, code="42P02", hint="give a value for each $n")
        with _asked(self._catalogs, context, query, values) as (relation, world):
            schema = _schema(relation, query)
            found = bounded(relation)
        arrays = [
            _done(context.session, query.effects[column.name], found.column(i))
            if column.name in query.effects
            else _fitted(found.column(i), column.type)
            for i, column in enumerate(schema)
        ]
        table = pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])
        batches = (batch for batch in table.to_batches())
        return Answer(schema, batches, read_time(world, None) or Timestamp(0))

    def close(self) -> None:
        """Let go of everything."""
        self._catalogs.close()


@contextmanager
def _asked(
    catalogs: PgCatalogs, context: Context, query: CatalogQuery, values: Sequence[object]
) -> Iterator[tuple[duckdb.DuckDBPyRelation, World]]:
    """Give a query that is understood; what is computed in the block can be interrupted."""
    session = context.session
    world = _world(context)
    given: dict[str, object] = {f"p{n}": value for n, value in enumerate(values, 1)}
    for number, what in enumerate(query.session, 1):
        given[f"s{number}"] = _value(session, what)
    timeout = session.settings.statement_timeout
    catalog = catalogs.at(world, _viewer(session, query))
    with catalog.ask(query, given, session.interrupt, timeout) as relation:
        yield relation, world


def _viewer(session: Conversation, query: CatalogQuery) -> Viewer:
    """Return for whom a query is: for anybody, unless it reads what each one sees his own of."""
    role: str | None = None
    said: tuple[tuple[str, str], ...] = ()
    if any(schema == INFORMATION_SCHEMA for schema, _ in query.relations):
        role = None if session.is_superuser else session.role
    if (PG_CATALOG, "pg_settings") in query.relations:
        names = (*(n for n, known in SETTINGS.items() if known.session), *CLIENT_SETTINGS)
        said = tuple((name, session.settings.get(name)) for name in names)
    others = (PG_CATALOG, "pg_stat_activity") in query.relations
    return Viewer(role, said, Reach(session.core.backends, session) if others else None)


def _world(context: Context) -> World:
    """Return what the transaction sees, or what there is now."""
    with context.core.reading() as world:
        return world if context.transaction is None else context.transaction.described(world)


def _value(session: Conversation, what: str) -> object:
    """Return what a query asks the session for."""
    kind, _, name = what.partition(":")
    if kind == "pg_backend_pid":
        return session.backend.pid
    if kind == "setting":
        return session.settings.get(name)
    if kind == "setting?":
        try:
            return session.settings.get(name)
        except UndefinedName:
            return None
    return SESSION_FUNCTIONS[_SYNONYMS.get(kind, kind)](session)


def _plain(value: object) -> object:
    """Return a parameter as DuckDB takes it."""
    found = value.value if isinstance(value, Typed) else value
    return list(found) if isinstance(found, tuple) else found


def _example(kind: Type) -> object:
    """Return some value of a type, for a query that is only described."""
    if isinstance(kind, Array):
        return []
    if kind == BOOLEAN:
        return False
    return 0 if kind in {*INTEGERS, OID} or isinstance(kind, Numeric) else ""


def _schema(relation: duckdb.DuckDBPyRelation, query: CatalogQuery) -> Schema:
    columns = []
    for name, storage in zip(relation.columns, map(str, relation.types), strict=True):
        kind = type_of_storage(storage) or TEXT
        special = query.special.get(name)
        if name in query.effects:
            kind = BOOLEAN
        elif special == "char" and kind == TEXT:
            kind = CHAR
        elif special == "vector" and isinstance(kind, Array):
            kind = _VECTORS.get(kind.element, TEXT)
        columns.append(Column(name, kind))
    return Schema(tuple(columns))


def _fitted(column: pa.ChunkedArray, kind: Type) -> Any:
    """Return a column as the wire wants it."""
    whole = column.combine_chunks()
    if kind in {TEXT, CHAR, *_VECTORS.values()} and not pa.types.is_string(whole.type):
        if pa.types.is_null(whole.type):
            return whole.cast(pa.string())
        return pa.array([None if v is None else _text(v) for v in whole.to_pylist()], pa.string())
    if isinstance(kind, Numeric):
        return whole.cast(pa.decimal128(kind.precision, kind.scale))
    if kind == INTERVAL:
        values = whole.to_pylist()
        parts = (v and Interval(v.months, v.days, v.nanoseconds // 1_000) for v in values)
        return from_python(parts, INTERVAL)
    return whole


def _done(session: Conversation, name: str, numbers: pa.ChunkedArray) -> pa.Array:
    """Do something to sessions, one after the other; return to which it could be done."""
    reach = Reach(session.core.backends, session)
    done = reach.cancel if name == "pg_cancel_backend" else reach.terminate
    found = [None if pid is None else done(pid) for pid in numbers.to_pylist()]
    return pa.array(found, pa.bool_())


def _text(value: object) -> str:
    """Return what has no type of its own, a vector or a row, as text."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return "(" + ",".join("" if v is None else str(v) for v in value.values()) + ")"
    return str(value)

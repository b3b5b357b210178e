"""Cached facts about query texts: syntax, columns, plans, and the roles that may run them.

A text that comes again is not parsed, planned and checked again. What is kept is a function of what
it was made from, and is used only as long as that is the same:

- a parsed text: of the text alone; of queries and the like, so no secret stays in memory;
- a description: of the text, the declared types, and the catalog;
- a plan: of the text, the types of its parameters, the time zone, and the catalog. The values are
  put in when it is used, if the plan provably does not depend on them (``sql.plan.bind``);
  a query with a NULL, or whose plan depends on values, is planned each time;
- that a role may read what a text names: of the catalog and the roles.

A catalog, or roles, are values that never change: a change makes others, and "the same" is "the
very same object". So the next statement after a change finds nothing here, and a transaction finds
what was made with the catalog that it sees. Texts with functions of a session are not kept: their
values are part of the plan.

Memory: the last ``MOST`` of each, of texts up to ``LONGEST`` characters; catalogs and roles are not
kept alive. Thread-safe.

Tests: tests/session/test_plans.py.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import ref

from reclock.dataflow.point import Point, point_of
from reclock.session.functions import is_of_session
from reclock.sql import statement as s
from reclock.sql.parse import parse_statements
from reclock.sql.plan.bind import bound, plan_late
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.build.parameter import Typed, literal_of
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.schema import Schema
from reclock.sql.types import Numeric
from reclock.sql.zone import zone

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.roles import Roles
    from reclock.session.described import Description
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import Parsed
    from reclock.sql.syntax.query import Query
    from reclock.sql.types import Type

V = TypeVar("V")

MOST: Final = 1_024
LONGEST: Final = 8_192

_OPEN: Final = (s.SelectStatement, s.Begin, s.Commit, s.Rollback, s.SetVariable, s.Show)
"""Statements of which nothing is secret, and which come often."""


class Kept(Generic[V]):
    """The values of the last ``MOST`` keys that were asked for."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        """Return the value of a key."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: Hashable, value: V) -> None:
        """Keep a value; that of the key that was asked for longest ago gives way."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > MOST:
                self._values.popitem(last=False)


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """A plan for all values of its parameters, which was made with a catalog.

    ``plan`` is None if there is none: the first time that a text came, or if it depends on values.
    """

    catalog: ref[Catalog]
    plan: QueryPlan | None
    schema: Schema
    point: Point | None
    """How it is looked up, if it is."""
    times: int = 1


class Plans:
    """What the sessions of a database know of the texts that they were given."""

    def __init__(self) -> None:
        self._parsed: Kept[tuple[Parsed, ...]] = Kept()
        self._plans: Kept[Known] = Kept()
        self._described: Kept[tuple[ref[Catalog], Description]] = Kept()
        self._allowed: Kept[tuple[ref[Catalog], ref[Roles]]] = Kept()

    def parsed(self, sql: str) -> tuple[Parsed, ...]:
        """Return the statements of a text."""
        found = self._parsed.get(sql)
        if found is None:
            found = parse_statements(sql)
            if len(sql) <= LONGEST and all(isinstance(p.statement, _OPEN) for p in found):
                self._parsed.put(sql, found)
        return found

    def known_text(self, sql: str) -> tuple[Parsed, ...] | None:
        """Return the statements of a text that is known."""
        return self._parsed.get(sql)

    # Plans.

    def plan(
        self, text: str, query: Query, parameters: tuple[object, ...], catalog: Catalog
    ) -> QueryPlan:
        """Return the plan of a query; ``text`` is that of its statement."""
        if not _is_kept(text):
            return plan_once(query, parameters, catalog)
        kinds = kinds_of(parameters)
        found = None if kinds is None else self._plans.get((text, kinds, zone()))
        if found is not None and found.catalog() is catalog and found.plan is not None:
            return bound(found.plan, values_of(parameters)) if parameters else found.plan
        made = plan_once(query, parameters, catalog)
        if kinds is None:
            return made
        late: QueryPlan | None = made
        again = found is not None and found.catalog() is catalog
        if parameters and again:  # not the first time: it pays to plan it for all values
            if found is not None and found.times > 1:
                return made  # it depends on them: that does not change
            given = [literal_of(value) for value in parameters]
            late = plan_late(query, given, made, lambda p: plan_once(query, p, catalog))
        elif parameters:
            late = None
        schema = Schema(made.root.schema.columns[: made.visible])
        point = None if late is None else point_of(late)
        self._plans.put((text, kinds, zone()), Known(ref(catalog), late, schema, point, 1 + again))
        return made

    def known(self, text: str, kinds: Kinds, catalog: Catalog) -> Known | None:
        """Return what is known of a text with parameters of these types."""
        found = self._plans.get((text, kinds, zone()))
        return found if found is not None and found.catalog() is catalog else None

    # Descriptions and rights.

    def description(
        self, text: str, declared: tuple[Type, ...], catalog: Catalog
    ) -> Description | None:
        """Return what a query takes and gives, if that is known."""
        found = self._described.get((text, declared))
        return found[1] if found is not None and found[0]() is catalog else None

    def describe(
        self, text: str, declared: tuple[Type, ...], catalog: Catalog, described: Description
    ) -> None:
        """Keep what a query takes and gives."""
        if _is_kept(text):
            self._described.put((text, declared), (ref(catalog), described))

    def may(self, text: str, role: str, catalog: Catalog, roles: Roles) -> bool:
        """Return whether it is known that a role may run a query."""
        found = self._allowed.get((text, role))
        return found is not None and found[0]() is catalog and found[1]() is roles

    def allow(self, text: str, role: str, catalog: Catalog, roles: Roles) -> None:
        """Keep that a role may run a query."""
        if text and len(text) <= LONGEST:
            self._allowed.put((text, role), (ref(catalog), ref(roles)))


Kinds = tuple[Any, ...]


def plan_once(query: Query, parameters: tuple[object, ...], catalog: Catalog) -> QueryPlan:
    """Plan a query for being answered once; what an index keeps of it is read there."""
    plan = plan_query(query, catalog, parameters=parameters)
    if catalog.kept_views:
        plan = replace(plan, root=catalog.kept(plan.root))
    return rewrite_query(plan, RewriteContext(outer_joins=True))


def kinds_of(parameters: Sequence[object]) -> Kinds | None:
    """Return the types of parameters as literals; None if a value is NULL or cannot be one."""
    found: list[Type] = []
    for value in parameters:
        if isinstance(value, Typed) and not isinstance(value.type, Numeric):
            if value.value is None:
                return None
            found.append(value.type)
            continue
        try:
            literal = literal_of(value)
        except Exception:
            return None
        if literal.value is None:
            return None
        found.append(literal.type)
    return tuple(found)


def values_of(parameters: Sequence[object]) -> list[object]:
    """Return the values of parameters as literals have them."""
    return [v.value if isinstance(v, Typed) else literal_of(v).value for v in parameters]


def _is_kept(text: str) -> bool:
    return bool(text) and len(text) <= LONGEST and not is_of_session(text)

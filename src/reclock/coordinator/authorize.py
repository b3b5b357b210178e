"""Who may run which statement.

Whoever opens the database himself, and a superuser, may do everything. Another role may

- read (SELECT, SUBSCRIBE, COPY, EXPLAIN) what it has SELECT on, each relation by the name that
  the statement calls it: a view shows what it shows, whatever it reads;
- write tables that it has INSERT, UPDATE or DELETE on; the latter two read, so need SELECT too;
- create tables, views, materialized views and indexes with CREATE on the database, over what it
  may read; it may then do everything with what it has made, but for dropping it;
- begin and end transactions, set its own settings, SHOW, and change its own password.

Everything else (sources, sinks, DROP, ALTER, roles, settings of the system) needs a superuser, and
so does a statement that is not in this list: nothing is allowed by being forgotten. Rights are
looked up for every statement, so a REVOKE is in force at once. System relations can be read by all;
they have no secrets.

Tests: tests/coordinator/test_authorize.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.define import Recording
from reclock.coordinator.item import Item
from reclock.coordinator.roles import DATABASE
from reclock.coordinator.sequence.delete import matching_rows
from reclock.coordinator.sequence.insert import plan_insert
from reclock.coordinator.sequence.target import target_table
from reclock.coordinator.sequence.update import before_and_after
from reclock.coordinator.system import RELATIONS
from reclock.errors import Forbidden
from reclock.sql import statement as s
from reclock.sql.plan.build import plan_query
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.roles import Roles
    from reclock.ids import ObjectId
    from reclock.sql.syntax.query import Query

_FREE = (s.Begin, s.Commit, s.Rollback, s.SetVariable, s.Show, s.Fetch, s.CloseCursor)


def authorize(
    roles: Roles,
    catalog: Catalog,
    role: str,
    statement: s.Statement,
    parameters: tuple[object, ...],
) -> None:
    """Refuse (42501) what a role may not do; ``parameters`` are for planning what it reads."""
    known = roles.find(role)
    if known is not None and known.superuser:
        return
    if known is None:
        message = f'role "{role}" does not exist any more'
        raise Forbidden(message, hint="log in as somebody else")
    if not isinstance(statement, _FREE):
        _Check(roles, catalog, role, parameters)(statement)


class _Check:
    """Checks one statement of one role."""

    def __init__(
        self, roles: Roles, catalog: Catalog, role: str, parameters: tuple[object, ...]
    ) -> None:
        self._roles = roles
        self._catalog = catalog
        self._role = role
        self._parameters = parameters

    def __call__(self, statement: s.Statement) -> None:
        match statement:
            case s.SelectStatement(query, _):
                self._query(query)
            case s.Subscribe(relation, query):
                self._relation_or_query(relation, query)
            case s.Copy(of) | s.ExplainTimestamp(of) | s.Declare(_, of):
                self(of)
            case s.CopyFrom(name, _):
                self._may("INSERT", target_table(name, self._catalog).id)
            case s.ExplainPlan(of):
                self._explain(of)
            case s.Insert() | s.Update() | s.Delete():
                self._write(statement)
            case s.CreateTable():
                self._create()
            case s.CreateView(or_replace=False) | s.CreateMaterializedView():
                self._create()
                self._query(statement.query, maintained=True)
            case s.CreateIndex():
                self._create()
                self._named(statement.relation, "SELECT")
            case s.AlterRole(name, options, _) if (
                name == self._role and options.login is None and options.superuser is None
            ):
                pass
            case _:
                message = "permission denied: this needs a superuser"
                raise Forbidden(message, hint="ask somebody who is one, or log in as one")

    def _explain(self, of: object) -> None:
        match of:
            case Name():
                self._named(of, "SELECT")
            case s.CreateView() | s.CreateMaterializedView():
                self._query(of.query, maintained=True)
            case s.CreateIndex():
                self._named(of.relation, "SELECT")
            case s.SelectStatement() | s.Subscribe():
                self(of)

    def _relation_or_query(self, relation: Name | None, query: Query | None) -> None:
        if relation is not None:
            self._named(relation, "SELECT")
        if query is not None:
            self._query(query, maintained=True)

    def _write(self, statement: s.Insert | s.Update | s.Delete) -> None:
        table = target_table(statement.name, self._catalog)
        recording = Recording(self._catalog)
        match statement:
            case s.Insert():
                self._may("INSERT", table.id)
                plan_insert(statement, self._catalog, self._parameters, recording)
            case s.Update():
                self._may("UPDATE", table.id)
                before_and_after(statement, table, recording, self._parameters)
            case s.Delete():
                self._may("DELETE", table.id)
                matching_rows(statement, recording, self._parameters)
        self._read(recording.found)

    def _create(self) -> None:
        if not self._roles.may(self._role, "CREATE", DATABASE):
            message = "permission denied: creating objects needs CREATE on the database"
            hint = f"an admin can GRANT CREATE ON DATABASE reclock TO {self._role}"
            raise Forbidden(message, hint=hint)

    def _query(self, query: Query, *, maintained: bool = False) -> None:
        recording = Recording(self._catalog)
        plan_query(query, recording, maintained=maintained, parameters=self._parameters)
        self._read(recording.found)

    def _named(self, name: Name, privilege: str) -> None:
        self._may(privilege, self._catalog.get(name, Item).id)

    def _read(self, found: Iterable[ObjectId]) -> None:
        for item in sorted(found):
            self._may("SELECT", item)

    def _may(self, privilege: str, item: ObjectId) -> None:
        if item in RELATIONS or self._roles.may(self._role, privilege, item):
            return
        object_ = self._catalog[item]
        message = f"permission denied for {object_}"
        detail = f"{self._role} does not have {privilege} on it"
        hint = f"an admin can GRANT {privilege} ON {object_.name} TO {self._role}"
        raise Forbidden(message, detail=detail, hint=hint)

"""Authorization: which role may run which statement.

A user who opens the database directly, and a superuser, may do everything. Another role may

- read (SELECT, SUBSCRIBE, COPY, EXPLAIN) what is its own or it has SELECT on, each relation by the
  name that the statement calls it; a view reads with the rights of its owner, so it works as long
  as the owner may read its inputs;
- write tables that are its own, or that it has INSERT, UPDATE or DELETE on; the latter two read, so
  need SELECT too, as do RETURNING, ON CONFLICT and MERGE, which needs what its WHENs do;
- create tables, views, materialized views and indexes with CREATE on the database, over what it
  may read; they are its own;
- replace, alter and drop what is its own, if nothing that goes with it has another owner, and grant
  privileges on it;
- begin and end transactions, set its own settings, SHOW, and change its own password.

Everything else (sources, sinks, roles, system settings) needs a superuser, and so does any
statement that is not in this list. Rights are checked for every statement, and for an open
SUBSCRIBE whenever roles change, so a REVOKE takes effect at once: they depend on roles and catalog
alone, and every change of either makes another ``Catalog.version``. System relations can be read by
all, but for those that may show what is in rows; none has secrets.

Tests: tests/session/test_authorization.py, tests/session/test_owners.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Index, Item, MaterializedView, View
from reclock.catalog.recording import Recording
from reclock.catalog.roles import DATABASE, gone
from reclock.catalog.seen import SeenCatalog
from reclock.errors import Forbidden
from reclock.session.dml.plan import plan_write, privileges
from reclock.session.dml.target import target_table
from reclock.session.sequence_functions import sequence_of
from reclock.sql import statement as s
from reclock.sql.parse import parse_statement
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import Get, walk
from reclock.sql.syntax.expression import Name
from reclock.system import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.roles import Roles
    from reclock.catalog.system_relation import SystemRelation
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.sql.syntax.query import Query

_FREE = (
    s.Begin, s.CatalogQuery, s.Commit, s.Rollback, s.SetTransaction, s.SetVariable, s.Show, s.Fetch,
    s.CloseCursor, s.Prepare, s.Execute, s.Deallocate, s.Discard, s.Unlisten,
    s.Savepoint, s.Release, s.RollbackTo, s.Maintain,
)  # fmt: skip


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
        raise gone(role)
    if not isinstance(statement, _FREE):
        _Check(roles, catalog, role, parameters)(statement)


def rights_of(
    role: str | None, statement: s.Statement, parameters: tuple[object, ...]
) -> Callable[[World], None]:
    """Return what refuses (42501) what a role began, once it may not do that any more.

    For what has no end: it costs a look at who there is, and the whole check when that changed.
    """
    seen: Roles | None = None

    def check(world: World) -> None:
        nonlocal seen
        if role is not None and world.roles is not seen:
            authorize(world.roles, world.catalog, role, statement, parameters)
            seen = world.roles

    return check


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
            case s.CatalogQuery():
                pass
            case s.SelectStatement(query, _):
                self._query(query)
                for call in statement.calls:
                    sequence = sequence_of(call.sequence, self._catalog, self._parameters)
                    self._may("UPDATE", sequence.id)
            case s.Subscribe(relation, query):
                self._relation_or_query(relation, query)
            case s.Copy(of) | s.ExplainTimestamp(of) | s.Declare(_, of):
                self(of)
            case s.CopyFrom(name, _):
                self._may("INSERT", target_table(name, self._catalog).id)
            case s.Truncate(names):
                for target in names:
                    self._may("DELETE", target_table(target, self._catalog).id)
            case s.ExplainPlan(of):
                self._explain(of)
            case s.Insert() | s.Update() | s.Delete() | s.Merge():
                self._write(statement)
            case _:
                self._change(statement)

    def _change(self, statement: s.Statement) -> None:
        match statement:
            case s.CreateTable() | s.CreateSequence():
                self._create()
            case s.CreateTableAs(_, query):
                self._create()
                self._query(query)
            case s.CreateView() | s.CreateMaterializedView():
                self._create()
                if statement.or_replace:
                    self._own([statement.name])
                self._query(statement.query, maintained=True)
            case s.CreateIndex():
                self._create()
                if statement.unique:
                    self._own([statement.relation])
                self._named(statement.relation, "SELECT")
            case s.Drop():
                self._own(statement.names, cascade=statement.cascade)
            case (
                s.AlterRetainHistory()
                | s.AlterSource()
                | s.RefreshSource()
                | s.AlterSequence()
                | s.AlterTable()
                | s.Rename()
                | s.Comment()
            ):
                self._own([statement.name])
            case s.Grant(_, (_, *_) as names):
                self._own(names)
            case s.AlterRole(name, options, _) if (
                name == self._role and options.login is None and options.superuser is None
            ):
                pass
            case _:
                message = "permission denied: this needs a superuser"
                raise Forbidden(message, hint="ask a superuser, or log in as one")

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

    def _write(self, statement: s.Insert | s.Update | s.Delete | s.Merge) -> None:
        table = target_table(statement.name, self._catalog)
        recording = Recording(self._catalog)
        for privilege in privileges(statement):
            self._may(privilege, table.id)
        plan_write(statement, self._catalog, self._parameters, recording)
        self._read(recording)

    def _create(self) -> None:
        if not self._roles.may(self._role, "CREATE", DATABASE):
            message = "permission denied: creating objects needs CREATE on the database"
            hint = f"an admin can GRANT CREATE ON DATABASE reclock TO {self._role}"
            raise Forbidden(message, hint=hint)

    def _query(self, query: Query, *, maintained: bool = False) -> None:
        recording = Recording(self._catalog)
        plan_query(query, recording, maintained=maintained, parameters=self._parameters)
        self._read(recording)

    def _own(self, names: Iterable[Name], *, cascade: bool = False) -> None:
        """Refuse what is not the role's own, and with CASCADE what goes with it and is not.

        Names that nothing has are the statement's affair; indexes go with what they are on.
        """
        catalog = self._catalog
        items = [item for name in names if (item := catalog.find(name.parts)) is not None]
        known = [item.id for item in items if item.id in catalog.items]
        if cascade:
            others = (catalog[item] for item in sorted(catalog.dependents(known)))
            items += [item for item in others if not isinstance(item, Index)]
        for item in items:
            if item.owner != self._role:
                message = f"permission denied: {item} does not belong to {self._role}"
                hint = f"its owner or a superuser can do that; one can ALTER {item.kind.upper()} "
                hint += f"{item.name} OWNER TO {self._role}"
                raise Forbidden(message, hint=hint)

    def _named(self, name: Name, privilege: str) -> None:
        item = self._catalog.get(name, Item)
        self._may(privilege, item.id)
        self._shows(item.id)

    def _read(self, recording: Recording) -> None:
        for item in sorted(recording.found | recording.system):
            self._may("SELECT", item)
            self._shows(item)

    def _shows(self, item: ObjectId) -> None:
        """Refuse a view whose owner may not read any more what it shows."""
        waiting, seen = [item], {item}
        while waiting:
            view = self._catalog.items.get(waiting.pop())
            if not isinstance(view, View | MaterializedView):
                continue
            for needed in sorted(view.depends | self._private(view)):
                if view.owner is not None and not self._has(view.owner, "SELECT", needed):
                    object_ = self._object(needed)
                    message = f"permission denied for {object_}"
                    detail = f"{view} reads it for {view.owner}, who does not have SELECT on it"
                    hint = f"an admin can GRANT SELECT ON {object_.name} TO {view.owner}"
                    raise Forbidden(message, detail=detail, hint=hint)
            waiting += sorted(view.depends - seen)
            seen |= view.depends

    def _private(self, view: View | MaterializedView) -> frozenset[ObjectId]:
        """Return the system relations that not everybody may read and a view names itself."""
        read = {node.item for node in walk(view.plan) if isinstance(node, Get)}
        if not any(item in RELATIONS and RELATIONS[item].private for item in read):
            return frozenset()
        made = parse_statement(view.sql)
        assert isinstance(made, s.CreateView | s.CreateMaterializedView)
        recording = Recording(SeenCatalog(self._catalog, view.seen))
        plan_query(made.query, recording, maintained=True)
        return frozenset(recording.system)

    def _object(self, item: ObjectId) -> Item | SystemRelation:
        return RELATIONS[item] if item in RELATIONS else self._catalog[item]

    def _has(self, role: str, privilege: str, item: ObjectId) -> bool:
        """Return whether a role has a privilege on something."""
        if (system := RELATIONS.get(item)) is not None and not system.private:
            return True
        return self._roles.has(role, privilege, self._object(item))

    def _may(self, privilege: str, item: ObjectId) -> None:
        if self._has(self._role, privilege, item):
            return
        object_ = self._object(item)
        message = f"permission denied for {object_}"
        detail = f"{self._role} does not have {privilege} on it"
        hint = f"an admin can GRANT {privilege} ON {object_.name} TO {self._role}"
        raise Forbidden(message, detail=detail, hint=hint)

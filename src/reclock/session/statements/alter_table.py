"""ALTER TABLE, and ALTER … RENAME TO.

A statement is a step of a transaction, the session's or one of its own, which is run again if
others change what it reads. What only describes is changed in place; else the rows are read,
changed and written to a table that takes the old one's place, with all that is kept of it
(``alter``).

Cost: that of what is described; or of all rows of the table, in the driver, and of the first load
of all views over it.

Tests: tests/session/test_alter_table.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.catalog.connections import ConnectionItem, SecretItem
from reclock.catalog.item import Index, Item, RelationItem, Source, Table
from reclock.engine.write import Change
from reclock.errors import NotSupported, SerializationFailure
from reclock.ids import ObjectId
from reclock.rows.result import Result
from reclock.session.alter.rebuild import rebuilt
from reclock.session.alter.table import READING, Altering
from reclock.session.define_table import redefined, unique_index
from reclock.session.dml.defaults import Defaults
from reclock.session.dml.target import whole
from reclock.session.statements.drafting import checked
from reclock.session.statements.drop import kind_of
from reclock.session.statements.transaction import commit
from reclock.sql.names import quoted
from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.dialect import tokenize
from reclock.sql.plan.relation import Get, QueryPlan
from reclock.sql.statement import Begin, Commit
from reclock.sql.statement.alter_table import DropConstraint
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.catalog.catalog import Catalog
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import AlterTable, Rename
    from reclock.sql.statement.alter_table import Alteration

I = TypeVar("I", bound=Item)  # noqa: E741 - an item

ATTEMPTS: Final = 5
"""How often it is tried by itself while others change what it reads."""


def alter_table(context: Context, statement: AlterTable) -> Result:
    """Change a table, and what is made of it."""
    defaults = Defaults(context.session)
    notices: list[str] = []

    def plan_of(catalog: Catalog) -> QueryPlan:
        table = _named(catalog, statement.name, Table)
        relation = table.relation()
        rows = Get(
            relation.id, relation.name, relation.schema, relation.timeline, relation.unique_keys
        )
        return QueryPlan(rows, rows.width)

    def step(draft: Draft) -> tuple[Draft, bool]:
        context.session.check_rights(statement, context.parameters, draft)
        draft, actions = _without_uniques(draft, statement)
        catalog = draft.catalog
        old = _named(catalog, statement.name, Table)
        role, interrupt = context.session.role, context.session.interrupt
        reads = any(isinstance(action, READING) for action in actions)
        reads = reads or drops_key(old)
        rows = whole(draft.answer(plan_of, role, interrupt)) if reads else None
        places = {at: at for at in range(len(old.columns))}
        uniques = [key for key in catalog.unique_keys(old) if key.index is not None]
        work = Altering(context.core, catalog, defaults, old, rows, places, uniques=list(uniques))
        for action in actions:
            work.apply(action)
        notices[:] = work.notices
        same = work.table == old and not work.anew and work.uniques == uniques
        if same and len(actions) == len(statement.actions):
            return draft, True
        return _applied(draft, old, work, context), True

    def drops_key(table: Table) -> bool:
        names = {getattr(action, "constraint", None) for action in statement.actions}
        return bool(table.primary_key) and table.key_constraint in names

    def read_first(table: Table) -> bool:
        return any(isinstance(action, READING) for action in statement.actions) or drops_key(table)

    def run() -> None:
        transaction = context.transaction
        assert transaction is not None
        table = _named(context.catalog, statement.name, Table)
        if read_first(table):
            transaction.check_write(table)
            transaction.reads(plan_of, context.session.role, context.session.interrupt)
        transaction.run(step)

    if statement.if_exists and context.catalog.find(statement.name.parts) is None:
        said = f'relation "{statement.name}" does not exist, skipping'
        return Result("ALTER TABLE", notices=(said,))
    in_transaction(context, run)
    return Result("ALTER TABLE", notices=tuple(notices))


def _applied(draft: Draft, old: Table, work: Altering, context: Context) -> Draft:
    """Return a draft in which a table is another one."""
    catalog = draft.catalog
    sequences = [context.owned(s, draft) for s in work.made]
    if not work.anew:
        new = _described(work.table, catalog, work)
        found = rebuilt(catalog, draft.roles, old, new)
        return _with_uniques(draft.edited(found.added, found.removed), new, work)
    first = len(sequences)
    item = ObjectId(f"u{int(catalog.version) + first + 1}")
    new = replace(_described(work.table, catalog, work), id=item)
    owned = {s.id: s for s in sequences}
    found = rebuilt(
        catalog, draft.roles, old, new, places=work.places, gone=work.gone,
        cascade=work.cascade, anew=True, first=first,
    )  # fmt: skip
    for s in owned.values():
        assert s.owned_by is not None
        owned[s.id] = replace(s, owned_by=s.owned_by._replace(table=item))
    gone = found.removed | set(work.removed)
    added = [*owned.values(), *(i for i in found.added if i.id not in gone)]
    after = _with_uniques(draft.edited(added, gone, found.roles), new, work)
    assert work.rows is not None
    return after.written(checked(context.core, Change(new, work.rows)))


def _described(table: Table, catalog: Catalog, work: Altering) -> Table:
    """Return a table with the text that makes one like it."""
    items = {**catalog.items, **{s.id: s for s in work.made}}
    uniques = [replace(key, index=table.id) if key.index is None else key for key in work.uniques]
    return redefined(table, replace(catalog, items=items), uniques)


def _without_uniques(draft: Draft, statement: AlterTable) -> tuple[Draft, list[Alteration]]:
    """Return a draft without the UNIQUE constraints that go, and the actions that are left."""
    table = _named(draft.catalog, statement.name, Table)
    known = {i.name: i for i in draft.catalog.unique_indexes(table) if i.constraint}
    gone, left = [], []
    for action in statement.actions:
        if isinstance(action, DropConstraint) and action.constraint in known:
            gone.append(known.pop(action.constraint).id)
        else:
            left.append(action)
    return (draft.edited((), gone) if gone else draft), left


def _with_uniques(draft: Draft, table: Table, work: Altering) -> Draft:
    """Return a draft with the indexes of new UNIQUE constraints."""
    for key in work.uniques:
        if key.index is None:
            item = draft.catalog.next_id
            made = unique_index(item, key.name, table, key.columns, key.nulls_distinct)
            draft = draft.edited([made])
    return draft


def rename(context: Context, statement: Rename) -> Result:
    """Give an object another name; what is made of it goes on."""
    tag = f"ALTER {statement.kind.upper()}"

    def step(draft: Draft) -> tuple[Draft, bool]:
        context.session.check_rights(statement, context.parameters, draft)
        catalog = draft.catalog
        old = _named(catalog, statement.name, kind_of(statement.kind))
        if isinstance(old, Source) and old.parent is not None:
            message = f'cannot rename "{old.name}": it is a table of a source'
            raise NotSupported(message, hint="make a view of it with another name")
        if isinstance(old, ConnectionItem | SecretItem):
            message = f"cannot rename {old}: statements name it"
            raise NotSupported(message, hint="make another one, and use that")
        catalog.check_new(Name((statement.to,), statement.name.position))
        new: Item = replace(old, name=statement.to, sql=_renamed(old, statement.to))
        if isinstance(old, Table):
            named = replace(old, name=statement.to)
            if old.primary_key:
                named = replace(named, key_name=old.key_constraint)
            new = redefined(named, catalog)
        if isinstance(new, RelationItem) and isinstance(old, RelationItem):
            return draft.edited(rebuilt(catalog, draft.roles, old, new).added), True
        if isinstance(old, Index) and old.constraint:
            table = catalog[old.on]
            assert isinstance(table, Table)
            return draft.edited([new, redefined(table, catalog.changed([new], ()))]), True
        return draft.edited([new]), True

    def run() -> None:
        assert context.transaction is not None
        context.transaction.run(step)

    if statement.if_exists and context.catalog.find(statement.name.parts) is None:
        said = f'relation "{statement.name}" does not exist, skipping'
        return Result(tag, notices=(said,))
    in_transaction(context, run)
    return Result(tag)


def _named(catalog: Catalog, name: Name, kind: type[I]) -> I:
    """Return the object of a name and a kind; PostgreSQL calls what is not there a relation."""
    if catalog.find(name.parts) is None:
        error = catalog.undefined(name, kind)
        error.message = f'relation "{name}" does not exist'
        raise error
    return catalog.get(name, kind)


def _renamed(item: Item, to: str) -> str:
    """Return the statement that makes an object, with another name in it."""
    cursor = Cursor(tokenize(item.sql), item.sql)
    kind = item.kind.upper().split()
    while not cursor.at_end and not cursor.accept(*kind):
        cursor.skip()
    cursor.accept("IF", "NOT", "EXISTS")
    start = cursor.position - 1
    if isinstance(item, Index) and cursor.sees("ON"):
        return f"{item.sql[:start]}{quoted(to)} {item.sql[start:]}"
    cursor.name()
    return item.sql[:start] + quoted(to) + item.sql[cursor.passed :]


def in_transaction(context: Context, run: Callable[[], None]) -> None:
    """Do something in the session's transaction, or in one of its own."""
    if context.transaction is not None:
        run()
        return
    for left in reversed(range(ATTEMPTS)):
        try:
            _alone(context, run)
        except SerializationFailure:
            if not left:
                raise
        else:
            return


def _alone(context: Context, run: Callable[[], None]) -> None:
    context.session.begin(Begin())
    try:
        run()
    except BaseException:
        context.session.end(keep=False)
        raise
    commit(context, Commit())

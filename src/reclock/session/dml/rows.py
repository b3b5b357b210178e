"""The rows of a write under construction: the target's, what SET makes of them, what is given.

A ``Step`` is some rows to which one thing happens. ``written`` puts its columns into the order that
a ``Form`` says, with those of RETURNING, which see the row as it will be, or, of one that is
deleted, as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported, StatementError, UndefinedName
from reclock.session.dml.defaults import DRY, Defaults
from reclock.session.dml.target import assigned, planned
from reclock.session.dml.written import Action, Fill, Form, Written
from reclock.sql.names import Scope
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.build.write import scope_of
from reclock.sql.plan.functions import find_aggregate
from reclock.sql.plan.relation import (
    Project,
    Union,
    Window,
    WindowCall,
    column,
)
from reclock.sql.plan.scalar import ColumnRef, Literal, walk
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.schema import Schema
from reclock.sql.syntax.expression import DefaultText, FunctionText
from reclock.sql.syntax.place import place_of, placed
from reclock.sql.types import BIGINT, INTEGER, TEXT

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from reclock.catalog.item import Table, TableColumn
    from reclock.catalog.unique import UniqueKey
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.build.block import Block
    from reclock.sql.plan.build.write import WritePlanner
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement.write import Assignments
    from reclock.sql.syntax.expression import Expression, Name
    from reclock.sql.syntax.query import SelectItem

Outputs = list[tuple[str, "Scalar"]]

_ACTION = FunctionText("merge_action", ())


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement writes to, as it is called, and what plans the statement."""

    planner: WritePlanner
    table: Table
    name: Name
    alias: str | None = None
    defaults: Defaults = DRY
    keys: tuple[UniqueKey, ...] = ()
    """What no two of its rows have in common."""
    fills: dict[int, Action] = field(default_factory=dict)
    """Columns that get numbers of sequences when the rows are known, and which rows do."""
    explicit: set[int] = field(default_factory=set)
    """Columns with a sequence that some rows of a query, or of MERGE, have a value for."""
    returned: dict[int, set[int]] = field(default_factory=dict)
    """Where RETURNING gives such numbers."""

    def fill(self, at: int, action: Action, written: object) -> None:
        """Note that a column gets numbers; not all rows of a statement may be so different."""
        if self.fills.get(at, action) is not action:
            raise _mixed(written)
        self.fills[at] = action

    @property
    def catalog(self) -> CatalogView:
        """Where the relations are that it reads."""
        return self.planner.catalog

    @property
    def called(self) -> str:
        """What qualifies its columns."""
        return self.alias or self.name.parts[-1]

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.table.columns)

    def scope(self, at: int = 0) -> Scope:
        """Return the names of its columns, which begin at a place of a block's rows."""
        return scope_of(self.called, self.table.schema, at)


@dataclass(frozen=True, slots=True)
class Step:
    """Rows to which one thing happens: values over the rows of ``block``.

    ``source`` are names of other columns of the block that RETURNING sees too, before or after
    those of the target.
    """

    block: Block
    action: Action
    before: Outputs = field(default_factory=list)
    after: Outputs = field(default_factory=list)
    number: Scalar | None = None
    place: Scalar | None = None
    source: Scope = field(default_factory=Scope)
    source_first: bool = False


def numbered(node: Node, table: Table) -> Node:
    """Return the rows of a table, each told from equal ones by a number if there is no key."""
    if table.checks_key:
        return node
    count = WindowCall(find_aggregate("row_number", (), window=True), (), BIGINT)
    return Window(node, tuple(range(node.width)), (), (("number", count),))


def identity(table: Table, at: int = 0) -> tuple[int, ...]:
    """Return which columns of numbered rows, from ``at`` on, tell each from all others."""
    if table.checks_key:
        return tuple(at + i for i in table.key)
    return tuple(range(at, at + len(table.columns) + 1))


def as_it_is(block: Block, table: Table, at: int = 0) -> Outputs:
    """Return the columns of the target in a block."""
    return [(name, column(block.node, at + i)) for i, name in enumerate(table.schema.names)]


def after_set(target: Target, block: Block, given: Assignments, before: Outputs) -> Outputs:
    """Return the row that SET makes of the one before; ``block`` grows columns of subqueries."""
    values: dict[int, tuple[Scalar | None, object]] = {}
    for name, expression in given.values:
        at = _assigned_to(name, target, values)
        default = isinstance(expression, DefaultText)
        values[at] = (None if default else target.planner.value(block, expression), expression)
    for names, query in given.rows:
        made = target.planner.row(block, query, len(names))
        for name, part in zip(names, made, strict=True):
            values[_assigned_to(name, target, values)] = (part, query)
    after = list(before)
    for at, (value, written) in values.items():
        column = target.table.columns[at]
        if value is not None and column.identity == "always":
            raise always(column, "can only be updated to DEFAULT", written)
        if value is None and column.sequence is not None:
            target.fill(at, Action.UPDATE, written)
        with placed(written):
            kept = assigned(target.table, at, value, target.planner.catalog, target.defaults)
        after[at] = (after[at][0], kept)
    return after


def _assigned_to(name: str, target: Target, known: Container[int]) -> int:
    names = target.table.schema.names
    if name not in names:
        message = f'column "{name}" of relation "{target.table.name}" does not exist'
        hint = f"there are the columns {', '.join(names)}"
        raise UndefinedName(message, hint=hint, position=target.name.position)
    at = names.index(name)
    if at in known:
        message = f'multiple assignments to column "{name}"'
        hint = "assign to each column once"
        raise StatementError(message, code="42601", hint=hint, position=target.name.position)
    return at


def new_row(
    target: Target,
    given: dict[int, Scalar],
    cells: dict[int, Expression],
    row: int | None = None,
) -> Outputs:
    """Return what is stored in each column of a new row: what was given, or its default.

    ``cells`` are the expressions of the text, if it has one for each column; ``row`` is the number
    of a row of VALUES.
    """
    outputs: Outputs = []
    for at, defined in enumerate(target.table.columns):
        if defined.sequence is not None and row is None:
            if at in given:
                target.explicit.add(at)
            else:
                target.fill(at, Action.INSERT, cells)
        with placed(cells.get(at)):
            stored_as = assigned(
                target.table, at, given.get(at), target.planner.catalog, target.defaults, row=row
            )
            outputs.append((defined.column.name, stored_as))
    return outputs


NOT_DEFAULT: Final = "cannot be given a non-DEFAULT value"


def always(column: TableColumn, what: str, written: object) -> StatementError:
    """Return the error of a value for a column that is GENERATED ALWAYS."""
    name = column.column.name
    message = f'column "{name}" {what}'
    detail = f'Column "{name}" is an identity column defined as GENERATED ALWAYS.'
    return StatementError(message, detail=detail, code="428C9", position=place_of(written))


def stored(table: Table, at: int, value: Scalar) -> Scalar:
    """Return a value as column ``at`` keeps it: of a varchar blanks too many are cut off."""
    column = table.columns[at]
    if column.length is None:
        return value
    left = call("left", (value, Literal(column.length, INTEGER)))
    return call("rtrim", (left,)) if column.fixed else left


def written(
    target: Target, form: Form, steps: Sequence[Step], returning: tuple[SelectItem, ...]
) -> Written:
    """Return a write of some steps, each with the columns that the form has."""
    nodes = [_finished(target, form, step, returning) for step in steps]
    node = nodes[0] if len(nodes) == 1 else Union(tuple(nodes))
    plan = planned(target.table, node)
    fixed = form.tagged + form.number + form.place + (form.before + form.after) * target.width
    returned = Schema(node.schema.columns[fixed:]) if returning else None
    if len(nodes) > 1 or returning or form.number or form.place or steps[0].source.columns:
        plan = rewrite_query(plan, RewriteContext(outer_joins=True))
    fills = tuple(
        Fill(at, action, tuple(sorted(target.returned.get(at, ()))))
        for at, action in target.fills.items()
    )
    if any(at in target.explicit for at in target.fills):
        raise _mixed(target.name)
    return Written(target.table, plan, form, returned, fills, target.defaults, target.catalog)


def _mixed(written: object) -> NotSupported:
    message = "DEFAULT of a sequence for some rows of a statement is not supported"
    hint = "write two statements"
    return NotSupported(message, hint=hint, position=place_of(written))


def _finished(target: Target, form: Form, step: Step, returning: tuple[SelectItem, ...]) -> Node:
    nulls: Outputs = [(c.name, Literal(None, c.type)) for c in target.table.schema]
    outputs: Outputs = []
    if form.tagged:
        outputs.append(("action", Literal(int(step.action), INTEGER)))
    if form.before:
        outputs += step.before or nulls
    if form.after:
        outputs += step.after or nulls
    if form.number:
        outputs.append(("number", step.number or Literal(None, BIGINT)))
    if form.place:
        outputs.append(("place", step.place or Literal(0, BIGINT)))
    if not returning:
        return Project(step.block.node, tuple(outputs))
    return _returned(target, step, outputs, returning)


def _returned(
    target: Target, step: Step, outputs: Outputs, returning: tuple[SelectItem, ...]
) -> Node:
    node = step.block.node
    kept = [(c.name, column(node, i)) for i, c in enumerate(node.schema)]
    seen = step.before if step.action is Action.DELETE else step.after
    shown = [(name, stored(target.table, at, value)) for at, (name, value) in enumerate(seen)]
    inner = Project(node, (*kept, *outputs, *shown))
    first = len(kept) + len(outputs)
    shape = Schema(inner.schema.columns[first:])
    own = scope_of(target.called, shape, first)
    scopes = (step.source, own) if step.source_first else (own, step.source)
    block = target.planner.block(inner, *scopes)
    block.known[_ACTION] = Literal(step.action.name, TEXT)
    given = target.planner.outputs(block, returning)
    _note_returned(target, step, first, given)
    places = range(len(kept), first)
    fixed = ((inner.schema[i].name, column(block.node, i)) for i in places)
    return Project(block.node, (*fixed, *given))


def _note_returned(target: Target, step: Step, first: int, given: Outputs) -> None:
    """Note where RETURNING gives numbers that are not known yet; refuse to compute with them."""
    for at, action in target.fills.items():
        if step.action is not action:
            continue
        for place, (_, scalar) in enumerate(given):
            if isinstance(scalar, ColumnRef) and scalar.index == first + at:
                target.returned.setdefault(at, set()).add(place)
            elif any(isinstance(p, ColumnRef) and p.index == first + at for p in walk(scalar)):
                name = target.table.schema[at].name
                message = f'an expression over "{name}", whose number is not known yet, '
                message += "is not supported in RETURNING"
                hint = f"return {name} itself"
                raise NotSupported(message, hint=hint, position=target.name.position)

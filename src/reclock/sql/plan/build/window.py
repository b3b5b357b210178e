"""OVER: window functions become columns, computed per partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.errors import NotSupported, StatementError, UndefinedName
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.coerce import convert, to_common
from reclock.sql.plan.comparable import comparison_key
from reclock.sql.plan.functions import find_aggregate, parameters_of
from reclock.sql.plan.functions.aggregate import AGGREGATE_SYNONYMS
from reclock.sql.plan.functions.overload import AnyOf
from reclock.sql.plan.relation import Frame, Project, SortKey, Window, WindowCall, column
from reclock.sql.plan.scalar import ColumnRef, Literal, Scalar
from reclock.sql.syntax import expression as s
from reclock.sql.syntax.place import place_of, placed
from reclock.sql.types import TEXT, UNKNOWN, Numeric, as_numeric

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import Block, Planner
    from reclock.sql.syntax.query import Select

_NO_FRAME = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile",
                       "lag", "lead"})  # fmt: skip
_WHOLE = Frame("rows", ("preceding", None), ("following", None))
_RUNNING = Frame("range", ("preceding", None), ("current row", None))


def add_windows(
    planner: Planner, select: Select, block: Block, calls: list[s.FunctionText]
) -> None:
    """Add a column to the block for each of ``calls``."""
    named = dict(select.windows)
    grouped: dict[tuple[object, object], list[tuple[s.FunctionText, s.WindowText]]] = {}
    for e in calls:
        over = _resolved(e.over or s.WindowText(), named)
        grouped.setdefault((over.partition, over.order), []).append((e, over))
    for members in grouped.values():
        _add(planner, block, members)


def check_windows(planner: Planner, select: Select, block: Block) -> None:
    """Refuse a WINDOW clause that could not be used, whether or not it is."""
    named: dict[str, s.WindowText] = {}
    build = ExpressionBuilder(planner, replace(block, known=dict(block.known)))
    for name, window in select.windows:
        if name in named:
            message = f'window "{name}" is already defined'
            hint = "give one of them another name"
            raise StatementError(message, code="42P20", hint=hint, position=place_of(window))
        with placed(window):
            over = _resolved(window, named)
            _frame(over, None)
        named[name] = window
        for expression in (*over.partition, *(item.expression for item in over.order)):
            build.value(expression)


def _resolved(over: s.WindowText, named: dict[str, s.WindowText]) -> s.WindowText:
    if over.name is None:
        return over
    base = named.get(over.name)
    if base is None:
        message = f'window "{over.name}" does not exist'
        known = ", ".join(named) or "none"
        raise UndefinedName(message, code="42704", hint=f"the WINDOW clause defines {known}")
    base = _resolved(base, named)
    return s.WindowText(None, base.partition, over.order or base.order, over.frame or base.frame)


def _add(
    planner: Planner, block: Block, members: list[tuple[s.FunctionText, s.WindowText]]
) -> None:
    build = ExpressionBuilder(planner, block)
    over = members[0][1]
    extra: list[Scalar] = []
    partition = [comparison_key(build.value(p)) for p in over.partition]
    order = [(comparison_key(build.value(i.expression)), i) for i in over.order]
    planned = []
    for e, o in members:
        call, arguments, condition = _planned(build, e, o)
        if any(isinstance(a, Literal) and a.value is None for a in _constants(e, arguments)):
            block.known[e] = Literal(None, call.type)
        else:
            planned.append((e, call, arguments, condition))
    if not planned:
        return
    base = block.node
    width = base.width

    def place(scalar: Scalar) -> int:
        if isinstance(scalar, ColumnRef):
            return scalar.index
        if scalar not in extra:
            extra.append(scalar)
        return width + extra.index(scalar)

    by = tuple(place(p) for p in partition)
    sort = tuple(SortKey(place(k), i.descending, i.nulls_first) for k, i in order)
    calls = []
    for e, call, arguments, condition in planned:
        at = tuple(place(a) for a in arguments)
        where = None if condition is None else place(condition)
        calls.append((e.name, WindowCall(call.function, at, call.type, call.frame, where)))
    kept = tuple((c.name, column(base, i)) for i, c in enumerate(base.schema))
    source = Project(base, (*kept, *(("key", x) for x in extra))) if extra else base
    block.node = Window(source, by, sort, tuple(calls))
    for number, (e, *_) in enumerate(planned):
        block.known[e] = column(block.node, source.width + number)


def _planned(
    build: ExpressionBuilder, e: s.FunctionText, over: s.WindowText
) -> tuple[WindowCall, tuple[Scalar, ...], Scalar | None]:
    if e.distinct or e.order or e.within_group:
        message = "DISTINCT or ORDER BY inside a window function is not supported"
        hint = "take the distinct rows in a subquery; OVER (ORDER BY …) orders"
        raise NotSupported(message, hint=hint, position=e.position)
    arguments = tuple(build(a) for a in e.arguments)
    name = AGGREGATE_SYNONYMS.get(e.name, e.name)
    if name in {"lag", "lead"} and len(arguments) == 3:
        value, default = to_common((arguments[0], arguments[2]), name)
        arguments = (value, arguments[1], default)
    found = find_aggregate(name, tuple(a.type for a in arguments), e.position, window=True)
    converted = []
    for a, p in zip(arguments, parameters_of(found, len(arguments)), strict=True):
        wanted = a.type
        if not isinstance(p, AnyOf):
            wanted = p
        elif a.type == UNKNOWN:
            wanted = TEXT
        elif p.name == "numeric" and not isinstance(a.type, Numeric):
            wanted = as_numeric(a.type)
        converted.append(convert(a, wanted))
    if not all(isinstance(c, Literal) for c in _constants(e, tuple(converted))):
        message = f"{name} with an argument that is not a literal is not supported"
        hint = "write it as a literal; CASE chooses between several"
        raise NotSupported(message, hint=hint, position=e.position)
    result = found.result_type(tuple(c.type for c in converted))
    frame = None if name in _NO_FRAME else _frame(over, e.position)
    condition = None if e.filter is None else build.condition(e.filter, "FILTER")
    return WindowCall(found, (), result, frame), tuple(converted), condition


def _constants(e: s.FunctionText, arguments: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Return the arguments that are the same for all rows; if one is NULL, so is the call."""
    if e.name == "ntile":
        return arguments
    return arguments[1:2] if e.name in {"lag", "lead", "nth_value"} else ()


def _frame(over: s.WindowText, position: int | None) -> Frame:
    written = over.frame
    if written is None:
        return _RUNNING if over.order else _WHOLE
    if written.unit == "range" and (written.start[1] or written.end[1]):
        message = "RANGE with an offset is not supported"
        raise NotSupported(message, hint="use ROWS", position=position)
    if written.unit == "groups":
        message = "GROUPS frames are not supported"
        hint = "use ROWS, over rows that are grouped first"
        raise NotSupported(message, hint=hint, position=position)
    return Frame(written.unit, _bound(written.start), _bound(written.end))


def _bound(bound: tuple[str, s.Expression | None]) -> tuple[str, int | None]:
    kind, offset = bound
    if offset is None:
        return kind, None
    if not isinstance(offset, s.NumberText) or not offset.text.isdigit():
        message = "a frame offset must be a whole number"
        raise StatementError(message, code="22013", hint="write it as a literal")
    return kind, int(offset.text)

"""From sqlglot's expressions to ``syntax.expression``; what is not listed is refused.

One function per node type in a table. Spellings that mean the same are folded here, so
that planning has fewer cases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.interval.qualifier import PLAIN
from reclock.sql.parse.node import expect_only, identifier, position_of, unsupported
from reclock.sql.parse.types import declared_type, qualifier_of
from reclock.sql.syntax import expression as s
from reclock.sql.types import INTERVAL, IntervalOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reclock.sql.syntax.query import Query

_BINARY: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Pow: "^",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or", exp.DPipe: "||",
    exp.NullSafeEQ: "is not distinct from", exp.NullSafeNEQ: "is distinct from",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
    exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "~", exp.RegexpILike: "~*",
    exp.ArrayContainsAll: "@>", exp.ArrayOverlaps: "&&",
}  # fmt: skip
_UNARY: Final[dict[type[exp.Expr], str]] = {
    exp.Neg: "-",
    exp.Not: "not",
    exp.BitwiseNot: "~",
}
_NULLARY: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentTimestamp: "now",
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time",
    exp.Localtimestamp: "localtimestamp",
    exp.Localtime: "localtime",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
}

_QUERIES: Final = (exp.Query, exp.Values)
_OF_SEQUENCES: Final = ("nextval", "setval", "currval")
_NAMED: Final = {
    "make_interval": ("years", "months", "weeks", "days", "hours", "mins", "secs"),
}
"""Functions whose arguments have names and may be left out."""


class ExpressionConverter:
    """Converts expressions; queries inside them go to ``query``."""

    def __init__(self, query: Callable[[exp.Expr], Query]) -> None:
        self._query = query
        self._cases: dict[type[exp.Expr], Callable[[exp.Expr], s.Expression]] = {
            exp.Column: self._column,
            exp.Identifier: lambda n: s.Name((identifier(n),), position_of(n)),
            exp.Star: self._star,
            exp.Literal: self._literal,
            exp.Boolean: lambda n: s.BooleanText(bool(n.this), position_of(n)),
            exp.Null: lambda n: s.NullText(position_of(n)),
            exp.ByteString: self._escaped,
            exp.RawString: self._escaped,
            exp.Paren: lambda n: self(n.this),
            exp.Tuple: lambda n: s.RowText(self.all(n.expressions)),
            exp.Array: lambda n: s.ArrayText(self.all(n.expressions)),
            exp.Parameter: self._parameter,
            exp.Placeholder: self._placeholder,
            exp.Is: self._is,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Exists: lambda n: s.ExistsQuery(self._query(n.this)),
            exp.Subquery: lambda n: s.ScalarQuery(self._query(n)),
            exp.Select: lambda n: s.ScalarQuery(self._query(n)),
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.Interval: self._interval,
            exp.Escape: self._escape,
            exp.Bracket: self._bracket,
            exp.Dot: self._dot,
            exp.Extract: self._extract,
            exp.Substring: self._substring,
            exp.StrPosition: self._position,
            exp.Trim: self._trim,
            exp.Overlay: self._overlay,
            exp.AtTimeZone: self._zone,
            exp.JSONExtract: lambda n: self._json(n, "->"),
            exp.JSONExtractScalar: lambda n: self._json(n, "->>"),
            exp.JSONBExtract: lambda n: self._json(n, "#>"),
            exp.JSONBExtractScalar: lambda n: self._json(n, "#>>"),
            exp.Anonymous: self._call,
            exp.Filter: self._filter,
            exp.WithinGroup: self._within,
            exp.Window: self._over,
            exp.Var: self._var,
        }
        for binary in _BINARY:
            self._cases[binary] = self._binary
        for unary in _UNARY:
            self._cases[unary] = self._unary
        for nullary in _NULLARY:
            self._cases[nullary] = self._nullary

    def __call__(self, node: exp.Expr) -> s.Expression:
        """Return ``node`` as our syntax, or refuse it by name."""
        case = self._cases.get(type(node))
        if case is None:
            raise unsupported(_construct(node), node)
        return case(node)

    def all(self, nodes: Iterable[exp.Expr]) -> tuple[s.Expression, ...]:
        """Convert each of ``nodes``."""
        return tuple(self(n) for n in nodes)

    def _column(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "table", "db", "catalog")
        column = cast("exp.Column", node)
        if isinstance(column.this, exp.Star):
            expect_only(column.this)
            return s.Star(tuple(identifier(p) for p in column.parts[:-1]), position_of(node))
        return s.Name(tuple(identifier(p) for p in column.parts), position_of(node))

    def _star(self, node: exp.Expr) -> s.Expression:
        expect_only(node)
        return s.Star()

    def _literal(self, node: exp.Expr) -> s.Expression:
        if node.args.get("is_string"):
            return s.StringText(str(node.this), position_of(node))
        return s.NumberText(str(node.this), position_of(node))

    def _escaped(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this")
        return s.StringText(str(node.this), position_of(node))

    def _parameter(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this")
        if not str(node.name).isdigit():
            msg = "a named parameter"
            raise unsupported(msg, node)
        return s.Parameter(int(node.name), position_of(node))

    def _placeholder(self, node: exp.Expr) -> s.Expression:
        hint = "write parameters as $1, $2, …"
        message = "syntax error at a placeholder"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))

    def _binary(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression", "negate", "full_match")
        symbol = _BINARY[type(node)]
        left, right = node.this, node.args["expression"]
        right = _as_quantifier(right)
        if isinstance(right, exp.Any | exp.All):
            made = self._quantified(left, symbol, right)
        else:
            made = s.Operator(symbol, (self(left), self(right)), position_of(node))
        return s.Operator("not", (made,)) if node.args.get("negate") else made

    def _quantified(self, left: exp.Expr, symbol: str, right: exp.Expr) -> s.Expression:
        every = isinstance(right, exp.All)
        inside = right.this
        unwrapped = inside.this if isinstance(inside, exp.Paren) else inside
        if isinstance(unwrapped, _QUERIES):
            return s.QuantifiedQuery(self(left), symbol, every, self._query(unwrapped))
        return s.QuantifiedArray(self(left), symbol, every, self(unwrapped))

    def _unary(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this")
        return s.Operator(_UNARY[type(node)], (self(node.this),), position_of(node))

    def _nullary(self, node: exp.Expr) -> s.Expression:
        expect_only(node)
        return s.FunctionText(_NULLARY[type(node)], (), position=position_of(node))

    def _is(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression", "negate")
        what = node.args["expression"]
        negated = bool(node.args.get("negate"))
        if isinstance(what, exp.Null):
            return s.IsTest(self(node.this), "null", negated)
        if isinstance(what, exp.Boolean):
            return s.IsTest(self(node.this), "true" if what.this else "false", negated)
        raise unsupported("IS " + what.sql("postgres"), node)

    def _between(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "low", "high", "symmetric", "negate")
        value, low, high = self(node.this), self(node.args["low"]), self(node.args["high"])

        def within(a: s.Expression, b: s.Expression) -> s.Expression:
            return s.Operator("and", (s.Operator(">=", (value, a)), s.Operator("<=", (value, b))))

        made = within(low, high)
        if node.args.get("symmetric"):
            made = s.Operator("or", (made, within(high, low)))
        return s.Operator("not", (made,)) if node.args.get("negate") else made

    def _in(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expressions", "query", "negate")
        operand = self(node.this)
        made: s.Expression
        query, items = node.args.get("query"), node.expressions
        if len(items) == 1 and isinstance(items[0], exp.Values):
            query = items[0]
        if query is not None:
            made = s.QuantifiedQuery(operand, "=", False, self._query(query))
        else:
            made = s.InList(operand, self.all(items))
        return s.Operator("not", (made,)) if node.args.get("negate") else made

    def _case(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "ifs", "default")
        operand, default = node.args.get("this"), node.args.get("default")
        branches = []
        for branch in node.args["ifs"]:
            expect_only(branch, "this", "true")
            branches.append((self(branch.this), self(branch.args["true"])))
        return s.CaseText(
            None if operand is None else self(operand),
            tuple(branches),
            None if default is None else self(default),
        )

    def _cast(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "to")
        declared = declared_type(node.args["to"])
        inner = node.this
        if isinstance(declared, IntervalOf) or declared == INTERVAL:
            qualifier = declared.qualifier if isinstance(declared, IntervalOf) else PLAIN
            if isinstance(inner, exp.Literal) and inner.args.get("is_string"):
                return s.IntervalText(str(inner.this), qualifier, position_of(node))
        return s.CastText(self(inner), declared, position_of(node))

    def _interval(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "unit")
        if not isinstance(node.this, exp.Literal) or not node.this.args.get("is_string"):
            msg = "an interval of an expression"
            raise unsupported(msg, node)
        qualifier = qualifier_of(node.args.get("unit"))
        return s.IntervalText(str(node.this.this), qualifier, position_of(node))

    def _escape(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression")
        like = self(node.this)
        negated = False
        if isinstance(like, s.Operator) and like.symbol == "not":
            like, negated = like.operands[0], True
        if isinstance(like, s.Operator) and like.symbol in {"like", "ilike"}:
            by = self(node.args["expression"])
            made = s.Operator(like.symbol, (*like.operands, by), like.position)
            return s.Operator("not", (made,)) if negated else made
        msg = "ESCAPE"
        raise unsupported(msg, node)

    def _bracket(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expressions")
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            msg = "an array slice"
            raise unsupported(msg, node)
        return s.Subscript(self(node.this), self(node.expressions[0]))

    def _dot(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression")
        right = node.args["expression"]
        if isinstance(right, exp.Anonymous) and node.this.name == "pg_catalog":
            return self._call(right)
        if isinstance(right, exp.Anonymous):
            msg = "a schema-qualified function"
            raise unsupported(msg, node)
        if isinstance(right, exp.Star):
            msg = "expansion of a record"
            raise unsupported(msg, node)
        return s.FieldText(self(node.this), identifier(right), position_of(node))

    def _extract(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression")
        part = s.StringText(str(node.this.name).lower())
        return self._made("extract", node, part, self(node.args["expression"]))

    def _substring(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "start", "length")
        given = (node.this, node.args.get("start"), node.args.get("length"))
        return self._made("substring", node, *(self(a) for a in given if a is not None))

    def _position(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "substr")
        return self._made("strpos", node, self(node.this), self(node.args["substr"]))

    def _trim(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression", "position")
        side = str(node.args.get("position") or "BOTH").upper()
        name = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
        given = (node.this, node.args.get("expression"))
        return self._made(name, node, *(self(a) for a in given if a is not None))

    def _overlay(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression", "from_", "for_")
        given = (node.this, node.args["expression"], node.args["from_"], node.args.get("for_"))
        return self._made("overlay", node, *(self(a) for a in given if a is not None))

    def _zone(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "zone")
        return self._made("timezone", node, self(node.args["zone"]), self(node.this))

    def _made(self, name: str, node: exp.Expr, *arguments: s.Expression) -> s.Expression:
        return s.FunctionText(name, arguments, position=position_of(node))

    def _json(self, node: exp.Expr, symbol: str) -> s.Expression:
        expect_only(node, "this", "expression", "only_json_types")
        path = node.args["expression"]
        key: s.Expression
        if isinstance(path, exp.JSONPath):
            steps = path.expressions[1:]
            if len(steps) != 1:
                msg = "a JSON path"
                raise unsupported(msg, node)
            step = steps[0]
            if isinstance(step, exp.JSONPathKey) and isinstance(step.this, str):
                key = s.StringText(step.this)
            elif isinstance(step, exp.JSONPathSubscript) and isinstance(step.this, int):
                key = s.NumberText(str(step.this))
            else:
                msg = "a JSON path"
                raise unsupported(msg, node)
        else:
            key = self(path)
        return s.Operator(symbol, (self(node.this), key), position_of(node))

    def _var(self, node: exp.Expr) -> s.Expression:
        if str(node.name).upper() == "DEFAULT":
            return s.DefaultText()
        msg = f'"{node.name}" here'
        raise unsupported(msg, node)

    def _call(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expressions")
        name = identifier(node.this)
        arguments = list(node.expressions)
        if name == "array" and len(arguments) == 1 and isinstance(arguments[0], exp.Query):
            msg = "ARRAY(SELECT …)"
            raise unsupported(msg, node)
        if name == "exists" and len(arguments) == 1 and isinstance(arguments[0], _QUERIES):
            return s.ExistsQuery(self._query(arguments[0]))
        if name == "row":
            return s.RowText(self.all(arguments))
        distinct = star = False
        order: tuple[s.SortItem, ...] = ()
        if arguments and isinstance(arguments[-1], exp.Order):
            last = arguments[-1]
            order = self.sort_items(last)
            arguments[-1] = last.this
        if arguments and isinstance(arguments[0], exp.Distinct):
            expect_only(arguments[0], "expressions")
            distinct = True
            arguments = [*arguments[0].expressions, *arguments[1:]]
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            expect_only(arguments[0])
            star, arguments = True, []
        if name in _OF_SEQUENCES and arguments and _is_regclass(arguments[0]):
            arguments[0] = arguments[0].this
        if name in _NAMED:
            return s.FunctionText(name, self._by_name(name, arguments), position=position_of(node))
        return s.FunctionText(
            name, self.all(arguments), distinct, star, order, position=position_of(node)
        )

    def _by_name(self, name: str, arguments: list[exp.Expr]) -> tuple[s.Expression, ...]:
        """Return all arguments in their places, 0 for those that are left out."""
        names = _NAMED[name]
        made: dict[str, s.Expression] = {}
        for at, argument in enumerate(arguments):
            given = isinstance(argument, exp.Kwarg)
            key = identifier(argument.this) if given else names[min(at, len(names) - 1)]
            if key not in names or key in made or at >= len(names):
                message = f"function {name} has no argument {key}, or it is given twice"
                hint = f"it takes {', '.join(names)}"
                raise InvalidSyntax(
                    message, code="42883", hint=hint, position=position_of(argument)
                )
            made[key] = self(argument.args["expression"] if given else argument)
        return tuple(made.get(key, s.NumberText("0")) for key in names)

    def sort_items(self, node: exp.Expr) -> tuple[s.SortItem, ...]:
        """Convert the entries of an ORDER BY."""
        expect_only(node, "this", "expressions")
        items = []
        for item in node.expressions:
            expect_only(item, "this", "desc", "nulls_first")
            items.append(
                s.SortItem(
                    self(item.this),
                    bool(item.args.get("desc")),
                    bool(item.args.get("nulls_first")),
                )
            )
        return tuple(items)

    def _function(self, node: exp.Expr) -> s.FunctionText:
        made = self(node)
        if not isinstance(made, s.FunctionText):
            raise unsupported(_construct(node), node)
        return made

    def _filter(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression")
        call, where = self._function(node.this), node.args["expression"]
        return replace(call, filter=self(where.this))

    def _within(self, node: exp.Expr) -> s.Expression:
        expect_only(node, "this", "expression")
        call = self._function(node.this)
        return replace(call, within_group=self.sort_items(node.args["expression"]))

    def _over(self, node: exp.Expr) -> s.Expression:
        if isinstance(node.this, exp.IgnoreNulls | exp.RespectNulls):
            msg = "IGNORE NULLS"
            raise unsupported(msg, node)
        return replace(self._function(node.this), over=self.window(node))

    def window(self, node: exp.Expr) -> s.WindowText:
        """Convert ``(PARTITION BY … ORDER BY … frame)``, or the name of a window."""
        expect_only(node, "this", "partition_by", "order", "spec", "alias", "over")
        alias, order, spec = (node.args.get(a) for a in ("alias", "order", "spec"))
        return s.WindowText(
            None if alias is None else identifier(alias),
            self.all(node.args.get("partition_by") or ()),
            () if order is None else self.sort_items(order),
            None if spec is None else self._frame(spec),
        )

    def _frame(self, spec: exp.Expr) -> s.FrameText:
        expect_only(spec, "kind", "start", "start_side", "end", "end_side")
        end = ("current row", None)
        if spec.args.get("end") is not None:
            end = self._bound(spec.args["end"], spec.args.get("end_side"))  # type: ignore[assignment]
        start = self._bound(spec.args["start"], spec.args.get("start_side"))
        return s.FrameText(str(spec.args["kind"]).lower(), start, end)

    def _bound(self, bound: object, side: object) -> tuple[str, s.Expression | None]:
        if isinstance(bound, str):
            if bound.upper() == "CURRENT ROW":
                return "current row", None
            return str(side).lower(), None
        return str(side).lower(), self(cast("exp.Expr", bound))


def _as_quantifier(node: exp.Expr) -> exp.Expr:
    """Return ALL and SOME of an array, which sqlglot takes for functions, as quantifiers."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        kinds: dict[str, type[exp.Expr]] = {"all": exp.All, "some": exp.Any}
        kind = kinds.get(str(node.this).lower())
        if kind is not None:
            return kind(this=node.expressions[0])
    return node


def _construct(node: exp.Expr) -> str:
    if isinstance(node, exp.Collate):
        return "COLLATE"
    if isinstance(node, exp.SimilarTo):
        return "SIMILAR TO"
    return type(node).__name__


def _is_regclass(node: exp.Expr) -> bool:
    """Return whether a name is cast to ``regclass``: functions of sequences take that."""
    return isinstance(node, exp.Cast) and isinstance(node.args["to"], exp.ObjectIdentifier)

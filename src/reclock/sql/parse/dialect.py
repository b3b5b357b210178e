"""The dialect: PostgreSQL as sqlglot reads it, with every function kept as it was written.

sqlglot knows thousands of functions of many engines and rewrites calls into its own nodes,
so that another engine's text can be generated. We generate nothing: which functions exist
is decided by our own table, so here a call stays a name and arguments, and only the calls
with a grammar of their own (``CAST``, ``EXTRACT``, …) are parsed specially.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from reclock.errors import InvalidSyntax, NotSupported
from reclock.sql.interval.qualifier import FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

COMMA: Final = "comma"
"""Marks, in ``meta``, a join that was written as a comma between the items of FROM."""

_AT_END: Final = "something is missing at the end"
_ORDER: Final = "SELECT FROM WHERE GROUP HAVING WINDOW ORDER LIMIT OFFSET"
_CLAUSES: Final = (
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.WINDOW, TokenType.ORDER_BY,
)  # fmt: skip
_BEGINS: Final = {TokenType.SELECT, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
_OWN_GRAMMAR = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")


class _Parser(PostgresParser):
    FUNCTIONS = {}  # noqa: RUF012  # sqlglot's class attributes are its configuration
    LAMBDAS = {  # noqa: RUF012  # of PostgreSQL are names => of arguments; j -> 'a' is an operator
        TokenType.FARROW: PostgresParser.LAMBDAS[TokenType.FARROW],
    }
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: PostgresParser.FUNCTION_PARSERS[name] for name in _OWN_GRAMMAR
    }
    PRIMARY_PARSERS = {  # noqa: RUF012
        **PostgresParser.PRIMARY_PARSERS,  # these three would forget where they stand
        TokenType.NULL: lambda self, token: self.expression(exp.Null(), token),
        TokenType.TRUE: lambda self, token: self.expression(exp.Boolean(this=True), token),
        TokenType.FALSE: lambda self, token: self.expression(exp.Boolean(this=False), token),
    }
    UNARY_PARSERS = {  # noqa: RUF012
        **PostgresParser.UNARY_PARSERS,  # of PostgreSQL, ~ binds less tightly than + and *
        TokenType.RLIKE: lambda self: self.expression(exp.BitwiseNot(this=self._parse_term())),
    }
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: PostgresParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("ANY", "CASE")
    }

    def _parse_join(self, *args: Any, **named: Any) -> exp.Join | None:
        """Say which joins are commas: they bind less tightly than all others."""
        comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **named)
        if comma and join is not None:
            join.meta[COMMA] = True  # no argument: queries over the catalog are printed again
        after = self._curr
        using = join is not None and join.args.get("using")
        if using and after is not None and after.token_type == TokenType.ALIAS:
            message = "an alias after USING is not supported"
            hint = "leave it out: the merged columns need no qualifier"
            raise NotSupported(message, hint=hint, position=after.start + 1)
        return join

    def _parse_wrapped_select(self, *args: Any, **named: Any) -> exp.Expr | None:
        """Read joins in parentheses that begin with LATERAL or a function, too."""
        made = super()._parse_wrapped_select(*args, **named)
        if isinstance(made, exp.Lateral | exp.Unnest):
            for join in self._parse_joins():
                made.append("joins", join)
        return made

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        """Read ``INTERVAL [(p)] '…' [fields]``, whose text sqlglot would take apart."""
        index = self._index
        if self._match(TokenType.INTERVAL):
            digits = self._interval_digits()
            if self._match(TokenType.STRING):
                this = exp.Literal.string(self._prev.text)
                said = f"{self._interval_fields()}{digits}"
                unit = exp.Var(this=said) if said else None
                return self.expression(exp.Interval(this=this, unit=unit))
        self._retreat(index)
        return super()._parse_interval(require_interval, parse_function_unit)

    def _parse_types(self, *args: Any, **named: Any) -> exp.Expr | None:
        """Read ``INTERVAL [fields] [(p)]`` as a type: sqlglot knows no digits of seconds."""
        index = self._index
        if self._match(TokenType.INTERVAL):
            said = f"{self._interval_fields()}{self._interval_digits()}"
            if said and not self._match(TokenType.STRING, advance=False):
                made = self.expression(exp.DataType(this=exp.Interval(unit=exp.Var(this=said))))
                while self._match_pair(TokenType.L_BRACKET, TokenType.R_BRACKET):
                    kind = exp.DataType.Type.ARRAY
                    made = exp.DataType(this=kind, expressions=[made], nested=True)
                return made
        self._retreat(index)
        return super()._parse_types(*args, **named)

    def _interval_digits(self) -> str:
        index = self._index
        if self._match(TokenType.L_PAREN) and self._match(TokenType.NUMBER):
            digits = self._prev.text
            if self._match(TokenType.R_PAREN):
                return f"({digits})"
        self._retreat(index)
        return ""

    def _interval_fields(self) -> str:
        """Read ``day``, ``day to second`` or ``day to second(3)``."""
        fields = [self._interval_field()]
        if fields[0] and self._match_text_seq("TO"):
            fields.append(self._interval_field())
        last = fields[-1]
        return " to ".join(fields) + (self._interval_digits() if last == "second" else "")

    def _interval_field(self) -> str:
        token = self._curr
        if token is None or token.token_type == TokenType.IDENTIFIER:
            return ""
        if token.text.lower() not in FIELDS:
            return ""
        self._advance()
        return str(token.text.lower())


class _Tokenizer(Postgres.Tokenizer):
    COMMANDS = set()  # noqa: RUF012  # a command would swallow the rest of the text


class _NoDollarQuotes(_Tokenizer):
    HEREDOC_STRINGS = []  # noqa: RUF012
    SINGLE_TOKENS = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}  # noqa: RUF012


class Reclock(Postgres):
    """PostgreSQL's grammar, with subscripts left as they are written."""

    INDEX_OFFSET = 0
    Parser = _Parser
    Tokenizer = _Tokenizer


class _Plain(Reclock):
    """The same for texts without ``$$``, where sqlglot takes ``$1,$`` for the tag of a string."""

    Tokenizer = _NoDollarQuotes


DIALECT: Final = Reclock()
_PLAIN: Final = _Plain()
_DOLLAR_QUOTE: Final = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")


def tokenize(text: str) -> list[Token]:
    """Split ``text`` into tokens; an unfinished string or comment is a syntax error."""
    try:
        dialect = DIALECT if _DOLLAR_QUOTE.search(text) else _PLAIN
        return list(dialect.tokenize(text))
    except TokenError as error:
        message = "syntax error: unfinished string, quoted name or comment"
        detail, hint = str(error).split("\n")[0], "close what the text opens: ' \" or /*"
        raise InvalidSyntax(message, detail=detail, hint=hint, position=len(text) + 1) from error


def parse_tokens(tokens: Sequence[Token], text: str) -> exp.Expr:
    """Parse the tokens of one statement, query or expression."""
    if not tokens:
        message = "syntax error at end of input"
        raise InvalidSyntax(message, hint=_AT_END, position=len(text) + 1)
    _check_commas(tokens)
    _check_order(tokens)
    parser = _Parser(error_level=ErrorLevel.IMMEDIATE, dialect=DIALECT)
    try:
        parsed = parser.parse(list(tokens), text)
    except ParseError as error:
        raise _syntax_error(error, text) from error
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Expr):
        message = f'syntax error at or near "{tokens[0].text}"'
        raise InvalidSyntax(
            message, hint=_hint("", str(tokens[0].text)), position=tokens[0].start + 1
        )
    return parsed[0]


def _check_commas(tokens: Sequence[Token]) -> None:
    """Refuse a list that goes on after its last comma, which sqlglot reads over."""
    for token, after in pairwise((*tokens, None)):
        if token is None or token.token_type != TokenType.COMMA:
            continue
        if after is None or after.token_type in {TokenType.FROM, TokenType.R_PAREN}:
            near = "end of input" if after is None else f'or near "{after.text}"'
            position = token.end + 2 if after is None else after.start + 1
            message = f"syntax error at {near}"
            hint = "leave out the comma before it, or what it separates is missing"
            raise InvalidSyntax(message, hint=hint, position=position)


def _check_order(tokens: Sequence[Token]) -> None:
    """Refuse clauses in another order than PostgreSQL's, or twice, which sqlglot reads."""
    latest = [0]
    for before, token in pairwise((None, *tokens)):
        assert token is not None
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            latest.append(0)
        elif kind == TokenType.R_PAREN and len(latest) > 1:
            latest.pop()
        elif kind in _BEGINS or _is_conflict(before, token):
            latest[-1] = 0
        elif kind in _CLAUSES:
            rank = _CLAUSES.index(kind) + 1
            if rank <= latest[-1]:
                message = f'syntax error at or near "{token.text}"'
                hint = f"the clauses of a query stand in the order {_ORDER}"
                raise InvalidSyntax(message, hint=hint, position=token.start + 1)
            latest[-1] = rank


def _is_conflict(before: Token | None, token: Token) -> bool:
    """Return whether ON CONFLICT is here: what follows is no part of the query before it."""
    if before is None or before.token_type != TokenType.ON:
        return False
    return str(token.text).upper() == "CONFLICT"


def _syntax_error(error: ParseError, text: str) -> InvalidSyntax:
    facts = error.errors[0] if error.errors else {}
    near = facts.get("highlight") or ""
    line, column = facts.get("line"), facts.get("col")
    position = None
    if line is not None and column is not None:
        before = sum(len(row) + 1 for row in text.split("\n")[: line - 1])
        position = max(before + column - len(near) + 1, 1)
    where = f'at or near "{near}"' if near else "at end of input"
    description = str(facts.get("description") or error).split(" but got ")[0]
    internal = description.startswith("Invalid expression") or "<class" in description
    detail = None if internal else description
    hint = _hint(description, near)
    return InvalidSyntax(f"syntax error {where}", detail=detail, hint=hint, position=position)


def _hint(description: str, near: str) -> str:
    """Say what most often is wrong where sqlglot stops."""
    if not near:
        return _AT_END
    if "Expecting )" in description:
        return "close the parenthesis that the text opens, or put a comma or operator before this"
    if near.upper() in _ORDER.split():
        return f"the clauses of a query stand in the order {_ORDER}"
    return "check what stands before it; a name that is also a keyword is written in double quotes"

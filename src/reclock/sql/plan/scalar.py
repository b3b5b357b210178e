"""Typed scalar expressions over the columns of one row.

Invariants: every expression knows its type and whether it can be NULL; columns are
referred to by position; conversions are explicit (``Cast``). ``And``, ``Or``, ``Case`` and
``Coalesce`` evaluate from left to right and only as far as needed, which decides whether
an error (``1/0``) in them counts; everything else evaluates all of its arguments.

``OuterRef`` stands for a column of an enclosing query and exists only until
``decorrelate`` has run. ``can_fail`` says whether the expression could fail for some row:
rewrites move only expressions that cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reclock.errors import WrongType
from reclock.sql.types import BOOLEAN, DOUBLE, MAX_PRECISION, TEXT, UNKNOWN, Array, Numeric, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.sql.plan.functions.overload import Overload


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """Column ``index`` of the input row."""

    index: int
    type: Type
    nullable: bool = True
    name: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return f"#{self.index}" + (f"{{{self.name}}}" if self.name else "")


@dataclass(frozen=True, slots=True)
class OuterRef:
    """Column ``index`` of the row of the query ``depth`` levels out (1 is the next one)."""

    depth: int
    index: int
    type: Type
    nullable: bool = True
    name: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return f"^{self.depth}#{self.index}" + (f"{{{self.name}}}" if self.name else "")


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is NULL. Values are hashable (arrays are tuples).

    Equal constants are the same in every expression, so 0 and −0 of a float are not equal, and
    NaN equals itself.
    """

    value: object
    type: Type

    def __eq__(self, other: object) -> bool:
        """Return whether both stand for the same value of one type."""
        if not isinstance(other, Literal) or other.__class__ is not self.__class__:
            return NotImplemented
        if self.type != other.type:
            return False
        if isinstance(self.value, float | tuple) or isinstance(other.value, float | tuple):
            return repr(self.value) == repr(other.value)
        return self.value == other.value

    def __hash__(self) -> int:
        exact = isinstance(self.value, float | tuple)
        return hash((repr(self.value) if exact else self.value, self.type))

    @property
    def nullable(self) -> bool:
        """Whether this is NULL."""
        return self.value is None

    def __str__(self) -> str:
        if self.value is None:
            return "null"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class Unbound(Literal):
    """A parameter whose value is not known yet: NULL, until its surroundings want a type.

    ``wanted`` receives each type that a place wants; the first is the parameter's.
    """

    wanted: Callable[[Type], None] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the table, applied."""

    function: Overload
    arguments: tuple[Scalar, ...]
    type: Type

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        if self.function.never_null:
            return False
        return self.function.makes_null or any(a.nullable for a in self.arguments)

    def __str__(self) -> str:
        name = self.function.name
        if not name[0].isalpha() and len(self.arguments) > 1:
            return "(" + f" {name} ".join(str(a) for a in self.arguments) + ")"
        return f"{name}({', '.join(str(a) for a in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion that may fail."""

    operand: Scalar
    type: Type

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return self.operand.nullable

    def __str__(self) -> str:
        return f"{self.operand}::{self.type}"


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of three-valued booleans, from left to right."""

    operands: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        """Always boolean."""
        return BOOLEAN

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return any(o.nullable for o in self.operands)

    def __str__(self) -> str:
        return "(" + " and ".join(str(o) for o in self.operands) + ")"


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of three-valued booleans, from left to right."""

    operands: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        """Always boolean."""
        return BOOLEAN

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return any(o.nullable for o in self.operands)

    def __str__(self) -> str:
        return "(" + " or ".join(str(o) for o in self.operands) + ")"


@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first branch whose condition is true; all results have one type."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar

    def __post_init__(self) -> None:
        """Refuse branches of unlike types."""
        for _, result in self.branches:
            if result.type != self.otherwise.type:
                message = f"CASE types {result.type} and {self.otherwise.type} cannot be matched"
                raise WrongType(message)

    @property
    def type(self) -> Type:
        """The common type of the results."""
        return self.otherwise.type

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return self.otherwise.nullable or any(r.nullable for _, r in self.branches)

    def __str__(self) -> str:
        inside = " ".join(f"when {c} then {r}" for c, r in self.branches)
        return f"case {inside} else {self.otherwise} end"


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first operand that is not NULL; all have one type."""

    operands: tuple[Scalar, ...]

    @property
    def type(self) -> Type:
        """The common type."""
        return self.operands[0].type

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return all(o.nullable for o in self.operands)

    def __str__(self) -> str:
        return "coalesce(" + ", ".join(str(o) for o in self.operands) + ")"


@dataclass(frozen=True, slots=True)
class Fault:
    """The error of an operand as text, ``SQLSTATE|message``; NULL if it has a value.

    No SQL text has it: it is for queries that look for the rows of an error (``sql.witness``).
    """

    operand: Scalar

    @property
    def type(self) -> Type:
        """Always text."""
        return TEXT

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out: for every row that has a value."""
        return True

    def __str__(self) -> str:
        return f"fault({self.operand})"


Scalar = ColumnRef | OuterRef | Literal | Call | Cast | And | Or | Case | Coalesce | Fault

NULL = Literal(None, UNKNOWN)
TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """Return the direct parts of ``scalar``."""
    match scalar:
        case Call():
            return scalar.arguments
        case Cast() | Fault():
            return (scalar.operand,)
        case And() | Or() | Coalesce():
            return scalar.operands
        case Case():
            return (*(part for branch in scalar.branches for part in branch), scalar.otherwise)
    return ()


def with_children(scalar: Scalar, parts: tuple[Scalar, ...]) -> Scalar:  # noqa: PLR0911  # one per case
    """Return ``scalar`` with its direct parts replaced by ``parts``."""
    match scalar:
        case Call():
            return Call(scalar.function, parts, scalar.type)
        case Cast():
            return Cast(parts[0], scalar.type)
        case Fault():
            return Fault(parts[0])
        case And():
            return And(parts)
        case Or():
            return Or(parts)
        case Coalesce():
            return Coalesce(parts)
        case Case():
            pairs = tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True))
            return Case(pairs, parts[-1])
    return scalar


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Yield ``scalar`` and everything inside it."""
    yield scalar
    for child in children(scalar):
        yield from walk(child)


def transform(scalar: Scalar, change: Callable[[Scalar], Scalar]) -> Scalar:
    """Apply ``change`` to every part, innermost first."""
    parts = children(scalar)
    if parts:
        changed = tuple(transform(p, change) for p in parts)
        if any(new is not old for new, old in zip(changed, parts, strict=True)):
            scalar = with_children(scalar, changed)
    return change(scalar)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """Return the positions of the columns that ``scalar`` reads."""
    return frozenset(s.index for s in walk(scalar) if isinstance(s, ColumnRef))


def has_outer(scalar: Scalar) -> bool:
    """Return whether ``scalar`` reads an enclosing query's row."""
    return any(isinstance(s, OuterRef) for s in walk(scalar))


def shifted(scalar: Scalar, by: int) -> Scalar:
    """Return ``scalar`` with every column moved ``by`` places."""
    return moved(scalar, lambda index: index + by)


def moved(scalar: Scalar, to: Callable[[int], int]) -> Scalar:
    """Return ``scalar`` with column i replaced by column ``to(i)``."""

    def change(part: Scalar) -> Scalar:
        if isinstance(part, ColumnRef):
            return ColumnRef(to(part.index), part.type, part.nullable, part.name)
        return part

    return transform(scalar, change)


def substituted(scalar: Scalar, by: tuple[Scalar, ...]) -> Scalar:
    """Return ``scalar`` with column i replaced by the expression ``by[i]``."""
    return transform(scalar, lambda s: by[s.index] if isinstance(s, ColumnRef) else s)


def can_fail(scalar: Scalar) -> bool:
    """Return whether some row could make ``scalar`` an error."""
    match scalar:
        case Fault():
            return False
        case Call() if scalar.function.failures:
            return True
        case Cast() if cast_can_fail(scalar.operand.type, scalar.type):
            return True
    return any(map(can_fail, children(scalar)))


_ALWAYS_FITS = {
    ("smallint", "integer"), ("smallint", "bigint"), ("integer", "bigint"),
    ("smallint", "real"), ("smallint", "double precision"), ("integer", "double precision"),
    ("bigint", "double precision"), ("real", "double precision"), ("date", "timestamp"),
    ("date", "timestamptz"), ("timestamp", "timestamptz"), ("timestamptz", "timestamp"),
    ("timestamp", "date"), ("timestamptz", "date"), ("integer", "real"), ("bigint", "real"),
    ("boolean", "integer"), ("integer", "boolean"), ("json", "text"),
}  # fmt: skip


def cast_can_fail(source: Type, target: Type) -> bool:  # noqa: PLR0911  # one per case
    """Return whether some value of ``source`` has no counterpart in ``target``."""
    if source == target or str(source) == "unknown" or str(target) == "text":
        return False
    if isinstance(source, Array) and isinstance(target, Array):
        return cast_can_fail(source.element, target.element)
    if (str(source), str(target)) in _ALWAYS_FITS:
        return False
    if isinstance(source, Numeric) and target == DOUBLE:
        return False
    if isinstance(target, Numeric):
        whole = target.precision - target.scale
        if isinstance(source, Numeric):
            return whole < source.precision - source.scale
        return whole < _DIGITS.get(str(source), MAX_PRECISION + 1)
    return True


_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}

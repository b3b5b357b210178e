"""One row of the table of functions: a signature and how Spark computes it.

``spark`` is a template over the arguments ``{0}``, ``{1}``, … that never raises: where
Spark would fail in ANSI mode it uses a ``try_`` form, and ``failures`` say which rows are
errors. A failure without a condition means: the value is NULL though no argument is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reclock.sql.types import Type

ResultRule = Callable[[tuple[Type, ...]], Type]
"""The result type, from the argument types after conversion."""


@dataclass(frozen=True, slots=True)
class Failure:
    """When the function has no value: SQLSTATE, message, and a Spark condition.

    The condition counts only where no argument is NULL, unless ``even_null``.
    """

    code: str
    message: str
    when: str | None = None
    even_null: bool = False


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A parameter that takes any type that satisfies a test, unconverted."""

    name: str
    accepts: Callable[[Type], bool]


Parameter = Type | AnyOf


@dataclass(frozen=True, slots=True)
class Overload:
    """A function for certain argument types.

    ``guarded`` says that ``spark`` would make a value of NULL arguments by itself, so that
    they must be looked at first.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Type | ResultRule
    spark: str
    failures: tuple[Failure, ...] = ()
    makes_null: bool = False
    never_null: bool = False
    variadic: bool = False
    volatile: bool = False
    guarded: bool = False

    def __str__(self) -> str:
        inside = ", ".join(p.name if isinstance(p, AnyOf) else str(p) for p in self.parameters)
        return f"{self.name}({inside})"

    def __repr__(self) -> str:
        return str(self)

    def result_type(self, arguments: tuple[Type, ...]) -> Type:
        """Return the type of the result for arguments already converted."""
        return self.result(arguments) if callable(self.result) else self.result

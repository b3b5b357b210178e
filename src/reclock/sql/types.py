"""SQL types: PostgreSQL's names at the prompt, Spark's names in expressions.

Invariant: a type is a frozen value; ``str(type)`` is PostgreSQL's name and
``parse_simple(str(type))`` gives it back; ``spark_name`` is what Spark calls the storage of
its values. ``json`` is kept as text in Spark; ``numeric`` has a precision and a scale
always (at most 38 digits, ``numeric`` alone is ``numeric(38,9)``); an ``interval`` is a struct of
its three numbers (``reclock.interval``), in the order of their names.

Which conversions happen by themselves: ``reclock.sql.plan.coerce``. Promotion rules and
the decimal rules, which are Spark's, are proven by tests/sql/test_spark_text.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidValue, NotSupported

if TYPE_CHECKING:
    from reclock.sql.interval.qualifier import Qualifier

MAX_PRECISION: Final = 38
MAX_LENGTH: Final = 10_485_760
_MINIMUM_ADJUSTED_SCALE = 6

_SPARK_NAMES = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "text": "STRING",
    "bytea": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "interval": "STRUCT<days: INT, micros: BIGINT, months: INT>",
    "json": "STRING",
    "unknown": "VOID",
}


@dataclass(frozen=True, slots=True)
class Simple:
    """A type without parameters.

    >>> str(BIGINT), BIGINT.spark_name, TIMESTAMP.spark_name
    ('bigint', 'BIGINT', 'TIMESTAMP_NTZ')
    """

    name: str

    @property
    def spark_name(self) -> str:
        """The type that holds its values in Spark."""
        return _SPARK_NAMES[self.name]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Numeric:
    """An exact decimal number of ``precision`` digits, ``scale`` of them after the point."""

    precision: int = MAX_PRECISION
    scale: int = 9

    def __post_init__(self) -> None:
        """Refuse what Spark cannot hold."""
        if not 1 <= self.precision <= MAX_PRECISION:
            message = f"NUMERIC precision {self.precision} must be between 1 and {MAX_PRECISION}"
            raise InvalidValue(message)
        if not 0 <= self.scale <= self.precision:
            message = f"NUMERIC scale {self.scale} must be between 0 and precision {self.precision}"
            raise InvalidValue(message)

    @property
    def spark_name(self) -> str:
        """The type that holds its values in Spark."""
        return f"DECIMAL({self.precision}, {self.scale})"

    def __str__(self) -> str:
        return f"numeric({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type, which may be NULL."""

    element: Type

    @property
    def spark_name(self) -> str:
        """The type that holds its values in Spark."""
        return f"ARRAY<{self.element.spark_name}>"

    def __str__(self) -> str:
        return f"{self.element}[]"


@dataclass(frozen=True, slots=True)
class Record:
    """A row of named fields."""

    fields: tuple[tuple[str, Type], ...]

    @property
    def spark_name(self) -> str:
        """The type that holds its values in Spark."""
        names = [(name.replace("`", "``"), t.spark_name) for name, t in self.fields]
        inside = ", ".join(f"`{name}`: {kind}" for name, kind in names)
        return f"STRUCT<{inside}>"

    def __str__(self) -> str:
        return "record(" + ", ".join(f"{name} {t}" for name, t in self.fields) + ")"


Type = Simple | Numeric | Array | Record


@dataclass(frozen=True, slots=True)
class Varchar:
    """What ``varchar(n)`` declares: text, of which a table's column takes ``length`` characters.

    It is not the type of an expression: a cast to it cuts, a column of it checks what is
    written, and either way what comes out is ``text``, in views as well.

    >>> str(Varchar(10))
    'character varying(10)'
    """

    length: int

    def __post_init__(self) -> None:
        """Refuse lengths that PostgreSQL refuses."""
        if not 1 <= self.length <= MAX_LENGTH:
            message = f"length for type varchar must be between 1 and {MAX_LENGTH}"
            raise InvalidValue(message, hint="use text for text of any length")

    def __str__(self) -> str:
        return f"character varying({self.length})"


@dataclass(frozen=True, slots=True)
class Char:
    """What ``char(n)`` declares: text of ``length`` characters, but for blanks at its end.

    PostgreSQL shows as many blanks as are missing, and lets none of them count. Here they are not
    kept: ``length``, ``||`` and comparisons say what they say there, and no blanks are shown.

    >>> str(Char(3))
    'character(3)'
    """

    length: int

    def __post_init__(self) -> None:
        """Refuse lengths that PostgreSQL refuses."""
        if not 1 <= self.length <= MAX_LENGTH:
            message = f"length for type char must be between 1 and {MAX_LENGTH}"
            raise InvalidValue(message, hint="use text for text of any length")

    def __str__(self) -> str:
        return f"character({self.length})"


@dataclass(frozen=True, slots=True)
class IntervalOf:
    """What ``interval day to second(3)`` declares: an interval that is cut and rounded.

    It is not the type of an expression: a literal or a cast of it gives an ``interval``. A column
    cannot be of it.

    >>> from reclock.sql.interval.qualifier import Qualifier
    >>> str(IntervalOf(Qualifier("hour", "minute")))
    'interval hour to minute'
    """

    qualifier: Qualifier

    def __str__(self) -> str:
        return f"interval {self.qualifier}".replace(" (", "(")


Declared = Type | Varchar | Char
"""What may stand after a column's name, or in a cast."""

Written = Declared | IntervalOf
"""What may stand in a cast."""

BOOLEAN: Final = Simple("boolean")
SMALLINT: Final = Simple("smallint")
INTEGER: Final = Simple("integer")
BIGINT: Final = Simple("bigint")
REAL: Final = Simple("real")
DOUBLE: Final = Simple("double precision")
TEXT: Final = Simple("text")
BYTEA: Final = Simple("bytea")
DATE: Final = Simple("date")
TIMESTAMP: Final = Simple("timestamp")
TIMESTAMPTZ: Final = Simple("timestamptz")
INTERVAL: Final = Simple("interval")
JSON: Final = Simple("json")
UNKNOWN: Final = Simple("unknown")
"""The type of NULL and of a quoted literal, until its surroundings decide."""

OID: Final = Simple("oid")
CHAR: Final = Simple('"char"')
INT2VECTOR: Final = Simple("int2vector")
OIDVECTOR: Final = Simple("oidvector")
"""Types of columns of PostgreSQL's catalog; nothing that a user makes has them."""

_ALIASES: dict[str, Simple] = {
    **{t.name: t for t in (BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, TEXT, BYTEA)},
    **{t.name: t for t in (DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL, JSON)},
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int": INTEGER,
    "int4": INTEGER,
    "int8": BIGINT,
    "float4": REAL,
    "float": DOUBLE,
    "float8": DOUBLE,
    "double": DOUBLE,
    "varchar": TEXT,
    "character varying": TEXT,
    "timestamp without time zone": TIMESTAMP,
    "timestamp with time zone": TIMESTAMPTZ,
    "jsonb": JSON,
}

INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)
FLOATS: Final = (REAL, DOUBLE)
DATETIMES: Final = (DATE, TIMESTAMP, TIMESTAMPTZ)
_INTEGER_DIGITS = {SMALLINT: 5, INTEGER: 10, BIGINT: 20}
_RANK = (SMALLINT, INTEGER, BIGINT, Numeric, REAL, DOUBLE)


def parse_simple(name: str) -> Type:
    """Read a type name as PostgreSQL spells it.

    >>> parse_simple("int8"), parse_simple("numeric"), parse_simple("text[]")
    (Simple(name='bigint'), Numeric(precision=38, scale=9), Array(element=Simple(name='text')))
    >>> parse_simple("money")
    Traceback (most recent call last):
    reclock.errors.NotSupported: type "money" is not supported
    hint: use a type that SHOW COLUMNS shows
    """
    text = " ".join(name.lower().split())
    if text.endswith("[]"):
        return Array(parse_simple(text[:-2]))
    base, paren, inside = text.partition("(")
    if base.strip() in {"numeric", "decimal", "dec"}:
        if not paren:
            return Numeric()
        digits = [int(d) for d in inside.rstrip(") ").split(",")]
        return Numeric(digits[0], digits[1] if len(digits) > 1 else 0)
    found = _ALIASES.get(text)
    if found is None:
        message = f'type "{name}" is not supported'
        raise NotSupported(message, hint="use a type that SHOW COLUMNS shows")
    return found


def is_number(t: Type) -> bool:
    """Return whether ``t`` is an integer, a numeric or a floating-point type."""
    return isinstance(t, Numeric) or t in INTEGERS or t in FLOATS


def as_numeric(t: Type) -> Numeric:
    """Return the numeric that holds every value of the integer or numeric ``t``."""
    if isinstance(t, Numeric):
        return t
    return Numeric(_INTEGER_DIGITS[t], 0) if isinstance(t, Simple) else Numeric()


def wider_number(a: Type, b: Type) -> Type:
    """Return the number type both ``a`` and ``b`` become as operands of one operator.

    A float and anything else are compared, added and so on as double precision.

    >>> str(wider_number(INTEGER, BIGINT)), str(wider_number(INTEGER, Numeric(12, 2)))
    ('bigint', 'numeric(12,2)')
    >>> str(wider_number(INTEGER, REAL)), str(wider_number(Numeric(12, 2), REAL))
    ('double precision', 'double precision')
    """
    if a != b and (a in FLOATS or b in FLOATS):
        return DOUBLE
    if isinstance(a, Numeric) or isinstance(b, Numeric):
        x, y = as_numeric(a), as_numeric(b)
        scale = max(x.scale, y.scale)
        whole = max(x.precision - x.scale, y.precision - y.scale)
        return adjusted(whole + scale, scale)
    return max((a, b), key=_rank)


def _rank(t: Type) -> int:
    return _RANK.index(Numeric if isinstance(t, Numeric) else t)


def adjusted(precision: int, scale: int) -> Numeric:
    """Fit a result into 38 digits by Spark's rule: keep whole digits, then at least 6 others.

    >>> str(adjusted(20, 4)), str(adjusted(59, 21))
    ('numeric(20,4)', 'numeric(38,6)')
    """
    if precision <= MAX_PRECISION:
        return Numeric(precision, scale)
    whole = precision - scale
    return Numeric(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MINIMUM_ADJUSTED_SCALE)))


def decimal_result(operator: str, a: Numeric, b: Numeric) -> Numeric:
    """Return the type of ``a operator b`` for decimals, which is the type Spark gives it."""
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    if operator in {"+", "-"}:
        scale = max(s1, s2)
        return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(_MINIMUM_ADJUSTED_SCALE, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return adjusted(min(p1 - s1, p2 - s2) + scale, scale)

"""Templates of Spark SQL, as functions have them, with texts put in their places.

Tests: tests/sql/test_spark_text.py.
"""

from __future__ import annotations

import re
from typing import Final

from reclock.sql.plan.functions.length import bytes_of

_HOLE: Final = re.compile(r"\{(\d+|\*|type|value|count|bytes|\{)\}")


def fill(template: str, values: list[str], type_: str = "", value: str = "") -> str:
    """Put texts into the holes of a template, reading it once: texts may have braces.

    Nothing of a text is a hole: ``concat('{1}', …)`` would let a user write Spark SQL.
    ``{{}`` stands for a brace.

    >>> fill("f({*}, {0})", ["'{1}'", "b"])
    "f('{1}', b, '{1}')"
    """

    def put(hole: re.Match[str]) -> str:  # noqa: PLR0911  # one per hole
        match hole[1]:
            case "*":
                return ", ".join(values)
            case "type":
                return type_
            case "value":
                return value
            case "count":
                return str(len(values))
            case "bytes":
                return " + ".join(map(bytes_of, values))
            case "{":
                return "{"
            case index:
                return values[int(index)]

    return _HOLE.sub(put, template)

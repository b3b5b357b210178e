r"""Files of Spark's settings, as ``spark-defaults.conf`` is one: Java's properties.

A line is a name, then ``=``, ``:`` or blanks, then a value; ``#`` and ``!`` begin a comment, and a
backslash at its end continues a line. ``parsed`` reads what ``java.util.Properties`` reads, and
like Spark leaves blanks at the end of values out; ``written`` writes what it reads back.

Tests: tests/spark/test_properties.py, which asks Java itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_BLANKS: Final = " \t\f"
_NAME: Final = re.compile(r"(?:\\.|[^\\=: \t\f])*")
_BETWEEN: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPED: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)")
_SIGNS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BACK: Final = {sign: letter for letter, sign in _SIGNS.items()}
_SPECIAL: Final = re.compile(r"[\\=: #!\t\n\r\f]")


def parsed(text: str) -> dict[str, str]:
    r"""Return the settings of a file; the last one of a name counts.

    >>> parsed("# mine\nspark.master  yarn\nspark.executor.memory=4g \nspark.a: b\\\n  c\n")
    {'spark.master': 'yarn', 'spark.executor.memory': '4g', 'spark.a': 'bc'}
    """
    found: dict[str, str] = {}
    lines = iter(_LINE_END.split(text))
    for first in lines:
        line = first.lstrip(_BLANKS)
        while _continues(line) and not _is_comment(line):
            line = line[:-1] + next(lines, "").lstrip(_BLANKS)
        if not line or _is_comment(line):
            continue
        name = _NAME.match(line)
        assert name is not None
        between = _BETWEEN.match(line, name.end())
        assert between is not None
        found[_plain(name[0])] = _plain(line[between.end() :]).strip()
    return found


def written(settings: Mapping[str, str]) -> str:
    """Return the text of a file that has these settings."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items())


def _is_comment(line: str) -> bool:
    return line[:1] in ("#", "!")


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _plain(text: str) -> str:
    def sign(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _SIGNS.get(found[2], found[2])

    return _ESCAPED.sub(sign, text)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: "\\" + _BACK.get(found[0], found[0]), text)

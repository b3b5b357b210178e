r"""The shape of a JSON record, taken from a sample: what stays, and the holes where values are.

Programs write records in one shape: the same members in the same order with the same
blanks. Such a record is literals and holes::

    {"id": 17, "name": "Zoë", "at": {"x": 1.5}, "note": null}
    {"id":   , "name": "   ", "at": {"x":    }, "note": null}

A hole is ``quoted``, the inside of a string, or bare: a number, true or false. ``null`` is
a literal. So is a member that nobody ``wanted`` if it is or has an array, such as the schema
that comes with every message of Debezium. There are no templates of arrays that are wanted,
of names with escapes, or of objects that have a name twice.

Definition. A payload *fits* if it is the literals with something in every hole. If then
every quoted hole holds the inside of a JSON string, and every bare one a number, true or
false, the payload is one JSON object with exactly the members of the template, however the
holes were found. That is all that ``json_template`` rests on.

Tests: tests/connectors/format/test_template.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.connectors.format.canonical import parse
from reclock.connectors.format.decoder import Fault

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    Path = tuple[str, ...]

_TOKEN: Final = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:'
    r'|"(?P<string>(?:[^"\\]|\\.)*)"'
    r'|(?P<word>[^\s"{}\[\],:]+)'
    r"|(?P<open>[{\[])"
    r"|(?P<close>[}\]])",
    re.DOTALL,
)


class Hole(NamedTuple):
    """Where a value goes: the names that lead to it, and whether it is in quotes."""

    path: Path
    quoted: bool


class Template(NamedTuple):
    """Literals around holes, one more than holes; and which paths are objects.

    ``paths`` are all members, but not what is inside of literals.
    """

    literals: tuple[bytes, ...]
    holes: tuple[Hole, ...]
    objects: frozenset[Path]
    paths: frozenset[Path]


def template_of(sample: bytes, wanted: AbstractSet[Path]) -> Template | None:
    """Return the template of a record, or None if it has none.

    >>> found = template_of(b'{"a": 1, "b": {"c": "x"}, "d": [2]}', {("a",)})
    >>> found.literals
    (b'{"a": ', b', "b": {"c": "', b'"}, "d": [2]}')
    >>> found.holes
    (Hole(path=('a',), quoted=False), Hole(path=('b', 'c'), quoted=True))
    """
    try:
        text = sample.decode()
        value = parse(text)
    except (UnicodeDecodeError, Fault):
        return None
    return _scan(text, value, wanted) if isinstance(value, dict) else None


def _scan(text: str, value: Any, wanted: AbstractSet[Path]) -> Template | None:
    """Return the template of ``text``, which writes ``value``, an object."""
    spans: list[tuple[int, int]] = []
    holes: list[Hole] = []
    objects: set[Path] = set()
    seen: set[Path] = set()
    path: Path = ()
    skipping = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if skipping:
            skipping += {"open": 1, "close": -1}.get(str(kind), 0)
        elif kind == "name":
            path = (*path[:-1], token["name"])
            if "\\" in path[-1] or path in seen:
                return None
            seen.add(path)
        elif kind == "string" or (kind == "word" and token["word"] != "null"):
            spans.append(token.span(kind))
            holes.append(Hole(path, kind == "string"))
        elif kind == "open" and _has_array(_at(value, path)) and path and path not in wanted:
            skipping = 1
        elif token["open"] == "{":
            objects.add(path)
            path = (*path, "")
        elif kind == "close":
            path = path[:-1]
        elif kind == "open":
            return None
    if not holes:
        return None
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    literals = [text[a:b].encode() for a, b in zip(ends, starts, strict=True)]
    return Template(tuple(literals), tuple(holes), frozenset(objects), frozenset(seen))


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value[name]
    return value


def _has_array(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_array, value.values()))
    return isinstance(value, list)

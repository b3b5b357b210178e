r"""The shape of a JSON record, taken from a sample: what stays, and the holes where values are.

Programs write records in one shape: the same members in the same order with the same
blanks. Such a record is literals and holes::

    {"id": 17, "name": "Zoë", "at": {"x": 1.5}, "note": null}
    {"id":   , "name": "   ", "at": {"x":    }, "note": null}

A hole is ``quoted``, the inside of a string, or bare: a number, true or false. ``null`` is
a literal. There are no templates of arrays, of names with escapes, or of objects that have
a name twice.

Definition. A payload *fits* if it is the literals with something in every hole. If then
every quoted hole holds no quote, backslash or control character, and every bare one a
number, true or false, the payload is one JSON object with exactly the members of the
template, however the holes were found. That is all that ``json_template`` rests on.

Tests: tests/connectors/format/test_template.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.connectors.format.canonical import parse
from reclock.connectors.format.decoder import Fault

if TYPE_CHECKING:
    Path = tuple[str, ...]

_TOKEN: Final = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:'
    r'|"(?P<string>(?:[^"\\]|\\.)*)"'
    r'|(?P<word>[^\s"{}\[\],:]+)'
    r"|(?P<mark>[{}\[\]])",
    re.DOTALL,
)


class Hole(NamedTuple):
    """Where a value goes: the names that lead to it, and whether it is in quotes."""

    path: Path
    quoted: bool


class Template(NamedTuple):
    """Literals around holes, one more than holes; and which paths are objects, and null."""

    literals: tuple[bytes, ...]
    holes: tuple[Hole, ...]
    objects: frozenset[Path]
    nulls: frozenset[Path]

    @property
    def paths(self) -> frozenset[Path]:
        """All members."""
        return self.objects | self.nulls | {hole.path for hole in self.holes}


def template_of(sample: bytes) -> Template | None:
    """Return the template of a record, or None if it has none.

    >>> found = template_of(b'{"a": 1, "b": {"c": "x"}}')
    >>> found.literals
    (b'{"a": ', b', "b": {"c": "', b'"}}')
    >>> found.holes
    (Hole(path=('a',), quoted=False), Hole(path=('b', 'c'), quoted=True))
    """
    try:
        text = sample.decode()
        value = parse(text)
    except (UnicodeDecodeError, Fault):
        return None
    return _scan(text) if isinstance(value, dict) else None


def _scan(text: str) -> Template | None:
    """Return the template of valid JSON: an object."""
    spans: list[tuple[int, int]] = []
    holes: list[Hole] = []
    objects: set[Path] = set()
    nulls: set[Path] = set()
    seen: set[Path] = set()
    path: Path = ()
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "name":
            path = (*path[:-1], token["name"])
            if "\\" in path[-1] or path in seen:
                return None
            seen.add(path)
        elif kind == "string" or (kind == "word" and token["word"] != "null"):
            spans.append(token.span(kind))
            holes.append(Hole(path, kind == "string"))
        elif kind == "word":
            nulls.add(path)
        elif token["mark"] == "{":
            objects.add(path)
            path = (*path, "")
        elif token["mark"] == "}":
            path = path[:-1]
        else:
            return None
    if not holes:
        return None
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    literals = [text[a:b].encode() for a, b in zip(ends, starts, strict=True)]
    return Template(tuple(literals), tuple(holes), frozenset(objects), frozenset(nulls))

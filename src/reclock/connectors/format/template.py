r"""The shape of a JSON record, taken from a sample: what stays, and the holes where values are.

Programs write records in one shape: the same members in the same order with the same
blanks. Such a record is literals and holes::

    {"id": 17, "name": "Zoë", "at": {"x": 1.5}, "note": null}
    {"id":   , "name": "   ", "at": {"x":    }, "note": null}

A hole is ``QUOTED``, the inside of a string; ``BARE``, a number, true or false; or ``WHOLE``, any
value: that of an array, a json or an interval, and an unused array. ``null`` is a literal, and so
is an unused object if it has an array, such as the schema that comes with every message of
Debezium. There are no templates of names with escapes, or of objects that have a name twice.

Definition. A payload *fits* if it is the literals with something in every hole. If then
every quoted hole holds the inside of a JSON string, every bare one a number, true or false,
and every whole one a JSON value, the payload is one JSON object with exactly the members of
the template, however the holes were found. That is all that ``json_template`` rests on.

Tests: tests/connectors/format/test_template.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.connectors.format.canonical import parse
from reclock.connectors.format.decoder import Fault
from reclock.sql.types import INTERVAL, JSON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.sql.types import Type

    Path = tuple[str, ...]

_TOKEN: Final = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:'
    r'|"(?P<string>(?:[^"\\]|\\.)*)"'
    r'|(?P<word>[^\s"{}\[\],:]+)'
    r"|(?P<open>[{\[])"
    r"|(?P<close>[}\]])",
    re.DOTALL,
)


QUOTED: Final = "quoted"
BARE: Final = "bare"
WHOLE: Final = "whole"


_WHOLE: Final = (JSON, INTERVAL)


class Hole(NamedTuple):
    """Where a value goes: the names that lead to it, and which part of it is the hole."""

    path: Path
    form: str


class Template(NamedTuple):
    """Literals around holes, one more than holes; and which paths are objects.

    ``paths`` are all members, but not what is inside of literals.
    """

    literals: tuple[bytes, ...]
    holes: tuple[Hole, ...]
    objects: frozenset[Path]
    paths: frozenset[Path]


def template_of(sample: bytes, wanted: Mapping[Path, Type]) -> Template | None:
    """Return the template of a record, or None if it has none.

    >>> found = template_of(b'{"a": 1, "b": {"c": "x"}, "d": [2]}', {})
    >>> found.literals
    (b'{"a": ', b', "b": {"c": "', b'"}, "d": ', b'}')
    >>> [hole.form for hole in found.holes]
    ['bare', 'quoted', 'whole']
    """
    try:
        text = sample.decode()
        value = parse(text)
    except (UnicodeDecodeError, Fault):
        return None
    return _Scan(text, value, wanted).template() if isinstance(value, dict) else None


class _Scan:
    """One pass over the tokens of ``text``, which writes ``value``, an object."""

    def __init__(self, text: str, value: Any, wanted: Mapping[Path, Type]) -> None:
        self.text = text
        self.value = value
        self.wanted = wanted
        self.holes: list[tuple[Hole, int, int]] = []
        self.objects: set[Path] = set()
        self.seen: set[Path] = set()

    def template(self) -> Template | None:
        """Return the template, if there is one."""
        if not self._read() or not self.holes:
            return None
        ends = [0, *(end for _, _, end in self.holes)]
        starts = [*(start for _, start, _ in self.holes), len(self.text)]
        literals = [self.text[a:b].encode() for a, b in zip(ends, starts, strict=True)]
        holes = tuple(hole for hole, _, _ in self.holes)
        return Template(tuple(literals), holes, frozenset(self.objects), frozenset(self.seen))

    def _read(self) -> bool:
        """Return whether all tokens are such as templates have."""
        path: Path = ()
        begun: tuple[int, bool] | None = None  # a container that is no business of ours
        depth = 0
        for token in _TOKEN.finditer(self.text):
            kind = str(token.lastgroup)
            if begun is not None:
                depth += {"open": 1, "close": -1}.get(kind, 0)
                if depth == 0:
                    start, is_hole = begun
                    begun = None
                    if is_hole:
                        self.holes.append((Hole(path, WHOLE), start, token.end()))
            elif kind == "name":
                path = (*path[:-1], token["name"])
                if "\\" in path[-1] or path in self.seen:
                    return False
                self.seen.add(path)
            elif kind == "open" and path and (whole := self._opaque(path, token[0])) is not None:
                begun, depth = (token.start(), whole), 1
            elif kind == "open":
                self.objects.add(path)
                path = (*path, "")
            elif kind == "close":
                path = path[:-1]
            else:
                self._scalar(path, token)
        return True

    def _opaque(self, path: Path, mark: str) -> bool | None:
        """Return None for an object to look into, else whether it is a hole, not a literal."""
        if mark == "[" or self.wanted.get(path) in _WHOLE:
            return True
        if path in self.wanted:
            return None
        value = self.value
        for name in path:  # another than the one here, if a name is there twice
            value = value.get(name) if isinstance(value, dict) else None
        return False if _has_array(value) else None

    def _scalar(self, path: Path, token: re.Match[str]) -> None:
        if token["word"] == "null":
            return
        if self.wanted.get(path) in _WHOLE:
            self.holes.append((Hole(path, WHOLE), *token.span()))
        elif token["word"] is None:
            self.holes.append((Hole(path, QUOTED), *token.span("string")))
        else:
            self.holes.append((Hole(path, BARE), *token.span("word")))


def _has_array(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_array, value.values()))
    return isinstance(value, list)

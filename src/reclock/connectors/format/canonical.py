"""JSON read without loss, and written in one way.

``parse`` reads JSON with numbers as ``Number``, their text: nothing is rounded and nothing
large is computed. ``canonical`` writes a parsed value as ``json.dumps`` does: a blank after
``,`` and ``:``, every character beyond ASCII escaped, members in their order, the last of
duplicate members; numbers stay as written. Columns of type json hold this form.

Invariant: what ``parse`` accepts is JSON of RFC 8259, nested at most ``DEEPEST`` deep, in
valid UTF-8, whose strings are valid Unicode where they are used (``checked``). Cost: linear.

Tests: tests/connectors/format/test_json.py.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from reclock.connectors.format.decoder import Fault, shown

DEEPEST: Final = 128


class Number(str):
    """The text of a JSON number."""

    __slots__ = ()


def _no_constant(name: str) -> Any:
    message = f"{name} is not JSON"
    raise Fault(message)


_DECODER: Final = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_no_constant
)


def parse(text: str) -> Any:
    """Return what ``text`` writes: dict, list, str, Number, bool or None.

    >>> parse('{"a": [1.50, true]}')
    {'a': ['1.50', True]}
    >>> parse('{"a": 1} b')
    Traceback (most recent call last):
    reclock.connectors.format.decoder.Fault: not JSON: extra data at character 9: {"a": 1} b
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        said = error.msg[0].lower() + error.msg[1:]
        message = f"not JSON: {said} at character {error.pos}: {shown(text)}"
        raise Fault(message) from error
    except RecursionError as error:
        raise _too_deep() from error
    if text.count("{") + text.count("[") > DEEPEST:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        inner = [
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)
        ]
        if not inner:
            return
        level = [v for container in inner for v in container]
    raise _too_deep()


def _too_deep() -> Fault:
    return Fault(f"not usable JSON: nested more than {DEEPEST} deep")


def canonical(value: Any) -> str:
    r"""Return a parsed value as text, in the one way it is written.

    >>> canonical(parse('{"b":[1.0,  null],"a":"é"}'))
    '{"b": [1.0, null], "a": "\\u00e9"}'
    """
    match value:
        case Number():
            return str(value)
        case str():
            return encode_basestring_ascii(checked(value))
        case dict():
            members = (
                f"{encode_basestring_ascii(checked(k))}: {canonical(v)}" for k, v in value.items()
            )
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(map(canonical, value)) + "]"
    return {None: "null", True: "true", False: "false"}[value]


def canonical_text(text: str) -> str:
    """Return JSON text in canonical form."""
    return canonical(parse(text))


def checked(text: str) -> str:
    r"""Return ``text`` if UTF-8 can write it: JSON can escape half a surrogate pair.

    >>> checked("\ud800")
    Traceback (most recent call last):
    reclock.connectors.format.decoder.Fault: \ud800 is not valid Unicode
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{shown(text)} is not valid Unicode"
        raise Fault(message) from error
    return text

"""Payloads: rows ``(k, v, s)`` as bytes in a format, in all the ways that mean the same row.

And payloads that mean none. Written from docs/formats.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "k", "type": "long"},
            {"name": "v", "type": ["null", "long"]},
            {"name": "s", "type": ["null", "string"]},
        ],
    }
)
VALUES = json.dumps({**json.loads(SCHEMA), "fields": json.loads(SCHEMA)["fields"][1:]})
"""The same without the key, which is elsewhere."""
CLAUSES = {
    "json": "JSON",
    "csv": "CSV",
    "avro": f"AVRO USING SCHEMA '{SCHEMA}'",
    "avro values": f"AVRO USING SCHEMA '{VALUES}'",
    "text": "TEXT",
    "bytes": "BYTES",
}
NAMES = ("k", "v", "s")
BAD = {
    "json": [
        b"nope", b"\xff", b"[1]", b"", b"1", b"null", b'{"k": "x"}', b'{"k": 1.5}', b'{"k": 1',
        b'{"k": 9223372036854775808}', b'{"k": 1} {"k": 2}', b'{"k": 1, "s": 5}', b'{"k": true}',
        b'{"k": 1, "s": "\\ud800"}', b'{"k": {}}',
    ],
    "csv": [
        b"1,2", b"x,2,a", b"1,2,a,b", b'1,2,a"b', b'"1,2,a', b"1,2.5,a", b"\xff,1,a", b"",
        b"9223372036854775808,1,a",
    ],
    "avro": [b"", b"\x02", b"\x02\x00\x00\x00", b"\x02\x06\x02", b"\x02\x02\x02\x02\x08ab"],
    "text": [b"\xff", b"a\xc3"],
    "bytes": [],
}  # fmt: skip


def encoded(rng: Random, form: str, row: tuple[Any, ...], names: tuple[str, ...]) -> bytes:
    """Return a payload of ``form`` that means ``row``."""
    if form == "json":
        return _json(rng, dict(zip(names, row, strict=True)))
    if form == "csv":
        line = ",".join(_csv(rng, value) for value in row)
        return line.encode()
    if form == "avro":
        return b"".join(
            _long(value) if name == "k" else _optional(value)
            for name, value in zip(names, row, strict=True)
        )
    if form == "text":
        return str(row[0]).encode()
    return bytes(row[0])


def _json(rng: Random, members: dict[str, Any]) -> bytes:
    made = {k: v for k, v in members.items() if v is not None or rng.random() < 0.5}
    if rng.random() < 0.2:
        made["other"] = rng.choice([1, "x", None, [1, {"k": 5}]])
    items = [(name, _value(rng, name, value)) for name, value in made.items()]
    if rng.random() < 0.2:
        rng.shuffle(items)
    if items and rng.random() < 0.1:
        items.insert(0, (items[-1][0], "7"))  # the last of duplicate members counts
    blank = rng.choice(["", " ", " ", " ", "  "])
    inside = ",".join(f"{blank}{json.dumps(name)}:{blank}{text}" for name, text in items)
    return ("{" + inside + blank + "}").encode()


def _value(rng: Random, name: str, value: Any) -> str:
    if isinstance(value, int) and rng.random() < 0.2:
        return rng.choice([f'"{value}"', f"{value}.0", f"{value}e0"])
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)


def _csv(rng: Random, value: Any) -> str:
    if value is None:
        return ""
    text = str(value)
    special = any(c in text for c in ',"\r\n') or not text
    quoted = special or (isinstance(value, str) and rng.random() < 0.2)
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _long(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])


def _optional(value: Any) -> bytes:
    if value is None:
        return b"\x00"
    if isinstance(value, int):
        return b"\x02" + _long(value)
    raw = value.encode()
    return b"\x02" + _long(len(raw)) + raw

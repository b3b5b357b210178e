"""Messages of CDCv2 in Avro, by hand: docs/sink-messages.md."""

from __future__ import annotations

import json
from typing import Any

from .payload import SCHEMA, _long, _optional

_TIMES = {"type": "array", "items": "long"}
_PAIR = [{"name": "time", "type": "long"}, {"name": "count", "type": "long"}]
_UPDATE = {
    "type": "record", "name": "update", "fields": [
        {"name": "data", "type": json.loads(SCHEMA)}, _PAIR[0], {"name": "diff", "type": "long"}],
}  # fmt: skip
_COUNTS = {"type": "array", "items": {"type": "record", "name": "counted", "fields": _PAIR}}
_PROGRESS = {
    "type": "record", "name": "progress", "fields": [
        {"name": "lower", "type": _TIMES}, {"name": "upper", "type": _TIMES},
        {"name": "counts", "type": _COUNTS}],
}  # fmt: skip
STATEMENT = json.dumps(
    {"type": "record", "name": "statement", "fields": [
        {"name": "array", "type": ["null", {"type": "array", "items": _UPDATE}]},
        {"name": "progress", "type": ["null", _PROGRESS]},
    ]}
)  # fmt: skip
BAD = [b"", b"\x00", b"\x00\x00", b"\x05", b"\x02\x02\x02", b"\x02\x00\x02\x00\x00\x00", b"nope"]
"""Payloads that are no message, or one that says nothing, or two things."""


def encoded(message: dict[str, Any]) -> bytes:
    """Return a message as Avro has it."""
    if "array" in message:
        return b"\x02" + _array([_update(u) for u in message["array"]]) + b"\x00"
    said = message["progress"]
    counts = [_long(c["time"]) + _long(c["count"]) for c in said["counts"]]
    times = [_array([_long(t) for t in said[side]]) for side in ("lower", "upper")]
    return b"\x00\x02" + b"".join([*times, _array(counts)])


def _update(update: dict[str, Any]) -> bytes:
    row = update["data"]
    data = _long(row["k"]) + _optional(row["v"]) + _optional(row["s"])
    return data + _long(update["time"]) + _long(update["diff"])


def _array(items: list[bytes]) -> bytes:
    return (_long(len(items)) + b"".join(items) if items else b"") + b"\x00"

"""From what is said of a sequence to the sequence, with PostgreSQL's defaults and refusals.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reclock.catalog.serial.item import OwnedBy, Position, Sequence
from reclock.errors import StatementError
from reclock.ids import ObjectId
from reclock.sql.types import BIGINT

if TYPE_CHECKING:
    from reclock.durable.keyed import Json
    from reclock.sql.statement.sequence import SequenceOptions

_BITS: Final = {"smallint": 15, "integer": 31, "bigint": 63}


def sequence_of(item: ObjectId, name: str, options: SequenceOptions) -> Sequence:
    """Return a new sequence."""
    kind = str(options.type or BIGINT)
    increment = 1 if options.increment is None else options.increment
    low, high = _bounds(kind, increment)
    minimum = low if options.minimum is None else options.minimum
    maximum = high if options.maximum is None else options.maximum
    start = options.start
    if start is None:
        start = minimum if increment > 0 else maximum
    made = Sequence(
        item, name, "", None, type=kind, increment=increment, minimum=minimum, maximum=maximum,
        start=start, cache=1 if options.cache is None else options.cache,
        cycle=bool(options.cycle),
    )  # fmt: skip
    return _checked(made)


def altered(known: Sequence, options: SequenceOptions) -> Sequence:
    """Return a sequence after what ALTER SEQUENCE says of it; OWNED BY and RESTART are not here."""
    kind = known.type if options.type is None else str(options.type)
    increment = known.increment if options.increment is None else options.increment
    before, after = _bounds(known.type, known.increment), _bounds(kind, increment)
    found: dict[str, Any] = {}
    for name, old, new in zip(("minimum", "maximum"), before, after, strict=True):
        now = getattr(known, name)
        given = getattr(options, name)
        follows = name in options.defaults or (options.type is not None and now == old)
        found[name] = given if given is not None else new if follows else now
    return _checked(
        replace(
            known, type=kind, increment=increment, **found,
            start=known.start if options.start is None else options.start,
            cache=known.cache if options.cache is None else options.cache,
            cycle=known.cycle if options.cycle is None else options.cycle,
        )
    )  # fmt: skip


def read_sequence(made: Sequence, record: Json) -> Sequence:
    """Return a sequence with what its text does not say."""
    owned, begun = record.get("owned_by"), record.get("begun")
    return replace(
        made,
        owned_by=None if owned is None else OwnedBy(ObjectId(owned[0]), int(owned[1])),
        begun=None if begun is None else Position(int(begun[0]), bool(begun[1])),
    )


def _bounds(kind: str, increment: int) -> tuple[int, int]:
    """Return the least and the greatest value of a sequence that says neither."""
    limit = 1 << _BITS[kind]
    return (1, limit - 1) if increment > 0 else (-limit, -1)


def _checked(made: Sequence) -> Sequence:
    """Return a sequence with its text; refuse one that cannot be."""
    limit = 1 << _BITS[made.type]
    if made.increment == 0:
        msg = "INCREMENT must not be zero"
        raise _refused(msg)
    for which, value in (("MAXVALUE", made.maximum), ("MINVALUE", made.minimum)):
        if not -limit <= value < limit:
            msg = f"{which} ({value}) is out of range for sequence data type {made.type}"
            raise _refused(msg)
    if made.minimum >= made.maximum:
        message = f"MINVALUE ({made.minimum}) must be less than MAXVALUE ({made.maximum})"
        raise _refused(message)
    for less, which, bound in (
        (made.start < made.minimum, "MINVALUE", made.minimum),
        (made.start > made.maximum, "MAXVALUE", made.maximum),
    ):
        if less:
            how = "less" if which == "MINVALUE" else "greater"
            msg = f"START value ({made.start}) cannot be {how} than {which} ({bound})"
            raise _refused(msg)
    if made.cache < 1:
        msg = f"CACHE ({made.cache}) must be greater than zero"
        raise _refused(msg)
    return replace(made, sql=made.text)


def _refused(message: str) -> StatementError:
    hint = "START, MINVALUE and MAXVALUE must fit one another and the type"
    return StatementError(message, code="22023", hint=hint)

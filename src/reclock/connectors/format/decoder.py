"""The protocol of decoders: payloads in, typed columns and the reasons of failures out.

Definition. For payloads p₀ … pₙ₋₁ a decoder gives, at every place i, ::

    pᵢ NULL          NULL in every column, and no fault: the envelope decides what it means
    pᵢ decodes       its values, and no fault
    pᵢ does not      NULL in every column, and a fault that says why, for a person

Nothing else: a record is never dropped and never half decoded, and no payload, however
hostile, raises (P9). What raises is the world around: a registry that does not answer.

A decoder is a value: it can be pickled, because it travels to where the records are read,
and equal decoders decode alike. Faults name the field, and show at most ``SHOWN``
characters of what was found there.

Tests: tests/connectors/format/test_choose.py makes one of each kind; each has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.sql.types import Type

SHOWN: Final = 60
_FIELD: Final = 'field "'


class Field(NamedTuple):
    """A column to decode; ``arrow`` is how its values of the SQL type ``type`` are stored."""

    name: str
    type: Type
    arrow: pa.DataType
    nullable: bool = True


class Decoded(NamedTuple):
    """Columns in the declared order, and faults: strings, NULL for records that decode.

    ``faults`` is None if every record decodes.
    """

    columns: tuple[pa.Array, ...]
    faults: pa.Array | None


class Decoder(Protocol):
    """From payloads to columns."""

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and the faults of binary payloads."""
        ...


class Fault(Exception):
    """Why a record does not decode; caught where records are decoded one by one."""


def shown(value: object) -> str:
    """Return what was found, cut to what a fault may show.

    >>> shown("x" * 100)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    """
    text = str(value)
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return text.encode(errors="backslashreplace").decode()


def in_field(name: str, fault: Fault) -> Fault:
    """Return the fault of a field's value as one of its record.

    >>> print(in_field("a", in_field("b", Fault("x is not of type bigint"))))
    field "a.b": x is not of type bigint
    """
    said = str(fault)
    if said.startswith(_FIELD):
        return Fault(f"{_FIELD}{shown(name)}.{said.removeprefix(_FIELD)}")
    return Fault(f'{_FIELD}{shown(name)}": {said}')


def null_in(name: str) -> Fault:
    """Return the fault of a record without a value for a NOT NULL column."""
    return Fault(f'{_FIELD}{shown(name)}" must not be null')

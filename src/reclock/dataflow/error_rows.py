"""Error rows: what a view has in the place of rows that could not be computed (P9).

Expressions report an error as text ``SQLSTATE|message``; an error row is the pair, at the
time and with the diff of the row that caused it, so it goes away with that row.

The error that a source ends with has a detail and a hint of its own: they are lines of the message
(``told``), and come apart again where it is raised (``failure``).
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.errors import ExpressionFailed

ERROR_TYPES: Final = (pa.string(), pa.string())
"""An error row is (SQLSTATE, message)."""

_RECORD: Final = (
    "send the key again, if the source has ENVELOPE UPSERT; or go on without the record, if later "
    "ones do not need it: ALTER SOURCE … SET (on_error = 'skip'); a source that refuses this "
    "(ENVELOPE MATERIALIZE, a consistency topic, no key) must be created again"
)
_HINTS: Final = {
    "22012": "divide by nullif(…, 0) to get NULL instead",
    "22003": "cast to a wider type before computing: bigint, numeric or double precision",
    "22P04": _RECORD,
    "22004": _RECORD,
    "23502": "records of an upsert source need a key; go on without such a record: "
    "ALTER SOURCE … SET (on_error = 'skip')",
    "55000": "drop the source and create it again",
    "55R00": "wait until then, or create the view WITH (REFRESH AT CREATION, …)",
    "22P02": "leave out rows whose text is no such value, with WHERE or CASE",
    "22025": "write the escape character twice to mean itself",
    "2201B": "leave out rows whose pattern is not one, with WHERE or CASE",
    "21000": "add LIMIT 1, or an aggregate",
    "54000": "leave out such rows, with WHERE or CASE, or take less of them, with left(…): what "
    "functions make has at most 64 MiB, and a series 10 million elements",
}


_FAULT: Final = re.compile(r'source "[^"]*", (partition|file) ')
"""How the message of a record that does not decode begins."""

_NOT_HELD: Final = re.compile(r'table .*: column ".*" has a value that type ')
"""How the message of a row of a database begins whose value has no type here that holds it."""

_DETAIL: Final = "\ndetail: "
_HINT: Final = "\nhint: "


def told(message: str, detail: str | None, hint: str | None) -> str:
    """Return an error as the message of an error row.

    >>> told("it stopped", "at 7", None).splitlines()
    ['it stopped', 'detail: at 7']
    """
    return "".join(
        [message, *([_DETAIL + detail] if detail else []), *([_HINT + hint] if hint else [])]
    )


def parted(text: str) -> tuple[str, str | None, str | None]:
    """Return message, detail and hint of the message of an error row.

    >>> parted(told("it stopped", None, "drop it"))
    ('it stopped', None, 'drop it')
    """
    text, _, hint = text.partition(_HINT)
    message, _, detail = text.partition(_DETAIL)
    return message, detail or None, hint or None


def failure(code: str, text: str, where: str) -> ExpressionFailed:
    """Return the error that an error row stands for; ``where`` it is, is part of its detail.

    >>> error = failure("55000", told("it stopped", "at 7", "drop it"), "in s")
    >>> error.message, error.detail, error.hint
    ('it stopped', 'at 7; in s', 'drop it')
    """
    message, detail, hint = parted(text)
    if _FAULT.match(message):
        where += "; the error goes when its key gets another value, or the record is skipped"
    elif detail is None and hint is None:
        where += "; the error goes when its row does"
    if _NOT_HELD.match(message):
        hint = "change the value in the database; the other rows are right, and are read again then"
    made = where if detail is None else f"{detail}; {where}"
    return ExpressionFailed(message, code=code, detail=made, hint=hint or hint_of(code))


def hint_of(code: str) -> str | None:
    """Return what to do about rows that have an error of this code.

    >>> hint_of("22012")
    'divide by nullif(…, 0) to get NULL instead'
    """
    return _HINTS.get(code)


def parts_of(texts: pa.Array) -> list[pa.Array]:
    """Return the codes and the messages of error texts.

    >>> [part.to_pylist() for part in parts_of(pa.array(["22012|division by zero"]))]
    [['22012'], ['division by zero']]
    """
    halves = pc.split_pattern(texts, "|", max_splits=1)
    return [pc.list_element(halves, 0), pc.list_element(halves, 1)]

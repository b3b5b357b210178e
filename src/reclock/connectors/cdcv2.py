"""CDCv2 messages as the input of the envelope MATERIALIZE: one row for each statement.

A message states updates, or progress (``change.cdcv2``)::

    {"array": [{"data": {…}, "time": t, "diff": d}, …]}
    {"progress": {"lower": [l], "upper": [u], "counts": [{"time": t, "count": n}, …]}}

It becomes as many rows as it states updates, or one row of progress; the place of a row is that
of its message. In Avro a message is a record with the fields ``array`` and ``progress``, each of
which may be null, and inside them those of the JSON.

A message is taken whole or not at all: if one of its updates is wrong, so is the message. That
is a fault like other records that do not decode (P9): what it stated is not known then, and
times that count on it do not close.

Cost: vectorised over all updates of a batch; progress is looked at one by one.

Tests: tests/connectors/test_cdcv2.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.change.cdcv2.message import Progress
from reclock.connectors.faults import NO_VALUE, UNDECODABLE, Faults, named
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.connectors.format.json_elements import ElementsDecoder
from reclock.errors import Error
from reclock.sql.types import BIGINT, Array, Record
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from reclock.connectors.format.decoder import Decoder
    from reclock.sql.statement.source import Format

    Places = NDArray[np.int64]


LAST: Final = (1 << 62) - 1
"""The last time that a sender may speak of: no sum of two of them overflows."""


def fields_of(columns: Sequence[Field]) -> list[Field]:
    """Return what to decode of a message about rows with ``columns``."""
    row = Record(tuple((c.name, c.type) for c in columns))
    update = Record((("data", row), ("time", BIGINT), ("diff", BIGINT)))
    count = Record((("time", BIGINT), ("count", BIGINT)))
    progress = Record(
        (("lower", Array(BIGINT)), ("upper", Array(BIGINT)), ("counts", Array(count)))
    )
    number = pa.int64()
    arrow_row = pa.struct([pa.field(c.name, c.arrow) for c in columns])
    arrow_update = pa.struct([("data", arrow_row), ("time", number), ("diff", number)])
    arrow_count = pa.struct([("time", number), ("count", number)])
    frontier, counts = pa.list_(number), pa.list_(arrow_count)
    arrow_progress = pa.struct([("lower", frontier), ("upper", frontier), ("counts", counts)])
    return [
        Field("array", Array(update), pa.list_(arrow_update)),
        Field("progress", progress, arrow_progress),
    ]


def decoder(given: Format, columns: Sequence[Field], options: Mapping[str, str]) -> Decoder:
    """Return the decoder of messages about rows with ``columns``."""
    fields = fields_of(columns)
    whole = decoder_of(given, fields, options)
    if given.kind != "json":
        return whole
    update = fields[0].type
    assert isinstance(update, Array)
    assert isinstance(update.element, Record)
    arrow = fields[0].arrow.value_type
    parts = [Field(n, kind, arrow.field(n).type) for n, kind in update.element.fields]
    return ElementsDecoder(
        whole, decoder_of(given, parts, options), "array", tuple(part.name for part in parts)
    )


@dataclass(frozen=True)
class Cdcv2Decode:
    """How messages become statements; ``value`` decodes ``fields_of``.

    ``types`` are those of the row's columns; ``required`` says which must not be NULL.
    """

    types: tuple[pa.DataType, ...]
    value: Decoder
    required: tuple[tuple[str, bool], ...]
    whose: str = "partition"

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the statements of all messages; in their order, if there are faults."""
        faults = Faults(raw, self.whose)
        value = raw.column("value")
        decoded = self.value.decode(value)
        if decoded.faults is not None:
            faults.add_each(decoded.faults, UNDECODABLE, "its value cannot be decoded")
        array, progress = decoded.columns
        faults.add(value.is_null(), NO_VALUE, "it has no value")
        both = pc.and_(array.is_valid(), progress.is_valid())
        faults.add(both, UNDECODABLE, 'it has both "array" and "progress"')
        neither = pc.and_(value.is_valid(), pc.and_(array.is_null(), progress.is_null()))
        faults.add(neither, UNDECODABLE, 'it has neither "array" nor "progress"')
        rows, time, diff, of = self._updates(array, faults)
        made = self._progress(progress, faults)
        code, message = faults.columns()
        bad = code.is_valid().to_numpy(zero_copy_only=False)
        keep = ~bad[of]
        said = np.array([at for at in made if not bad[at]], np.int64)
        wrong = np.flatnonzero(bad)
        stated = [*rows, time, diff]
        if len(wrong):
            of, stated = of[keep], [column.filter(pa.array(keep)) for column in stated]
        places = np.concatenate([of, said, wrong])
        rest, updates = len(said) + len(wrong), len(of)
        columns = [pa.concat_arrays([c, pa.nulls(rest, c.type)]) for c in stated]
        for n, kind in enumerate((pa.int64(), pa.int64(), pa.string())):
            progress = pa.array([made[at][n] for at in said.tolist()], kind)
            parts = [pa.nulls(updates, kind), progress, pa.nulls(len(wrong), kind)]
            columns.append(pa.concat_arrays(parts))
        for column in (code, message):
            parts = [pa.nulls(updates + len(said), pa.string()), column.take(pa.array(wrong))]
            columns.append(pa.concat_arrays(parts))
        whole = [c.take(pa.array(places)) for c in raw.columns[:2]] + columns
        if not len(wrong):
            return named(whole)
        order = pa.array(np.argsort(places, kind="stable"))  # a fault is where its message is
        return named([column.take(order) for column in whole])

    def _updates(
        self, array: pa.Array, faults: Faults
    ) -> tuple[list[pa.Array], pa.Array, pa.Array, Places]:
        """Return all updates, with what they change, and whose they are."""
        of = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
        updates = array.flatten()
        data, time, diff = updates.flatten()
        missing = pc.or_(updates.is_null(), data.is_null())
        wrong = [
            (missing, "an update has no data"),
            (_out_of_range(time), f"an update has no time from 0 to {LAST}"),
            (pc.fill_null(pc.equal(diff, 0), True), "an update has no diff other than 0"),
        ]
        rows = data.flatten()
        for column, (name, needed) in zip(rows, self.required, strict=True):
            if needed and column.null_count:
                wrong.append((column.is_null(), f'column "{name}" is NULL'))
        for which, reason in wrong:
            if which.true_count:
                messages = np.zeros(len(array), np.bool_)
                messages[of[which.to_numpy(zero_copy_only=False)]] = True
                faults.add(pa.array(messages), UNDECODABLE, reason)
        return rows, time, diff, of

    def _progress(
        self, progress: pa.Array, faults: Faults
    ) -> dict[int, tuple[int, int | None, str]]:
        """Return what is stated of progress, by the number of the message."""
        made: dict[int, tuple[int, int | None, str]] = {}
        there = progress.is_valid().to_numpy(zero_copy_only=False)
        for at in np.flatnonzero(there).tolist():
            try:
                made[at] = _checked(progress[at].as_py())
            except (Error, TypeError, ValueError) as error:
                said = (error.detail if isinstance(error, Error) else None) or str(error)
                which = np.zeros(len(progress), np.bool_)
                which[at] = True
                faults.add(pa.array(which), UNDECODABLE, f"its progress is wrong: {said}")
        return made


def _out_of_range(time: pa.Array) -> pa.Array:
    return pc.fill_null(pc.or_(pc.less(time, 0), pc.greater(time, LAST)), True)


def _checked(said: dict[str, Any]) -> tuple[int, int | None, str]:
    """Return lower, upper (None: closed) and counts of a statement, as they are kept."""
    for name in ("lower", "upper", "counts"):
        if said[name] is None:
            message = f"{name} is missing"
            raise ValueError(message)
    if len(said["lower"]) != 1 or len(said["upper"]) > 1:
        message = "lower must have one time, upper one or none"
        raise ValueError(message)
    if max([0, *said["upper"]]) > LAST + 1:
        message = f"times are from 0 to {LAST}"
        raise ValueError(message)
    lower, upper = (Antichain(map(Timestamp, said[name])) for name in ("lower", "upper"))
    counts = tuple((Timestamp(c["time"]), int(c["count"])) for c in said["counts"])
    made = Progress(lower, upper, counts)
    text = json.dumps([[int(time), count] for time, count in made.counts])
    return int(lower.element()), None if upper.is_closed else int(upper.element()), text

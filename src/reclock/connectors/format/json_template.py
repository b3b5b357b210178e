"""JSON batches by templates: records of one shape, and the texts in their holes.

``read_template`` takes the shape of a record, finds the others that fit it, and converts
their holes by columns. It is sure of the records that fit with a right value in every hole,
and of no others: by the definition in ``template`` those are JSON objects with exactly these
members, so they decode to exactly these values. Numbers are read from their digits, never
by way of a float. Arrays and ``json`` are read as ``json_exact`` reads them, every distinct
value once.

Cost: about that of ``polars.read_ndjson`` of the same records, which makes no exact numbers
and no times (benchmarks/decode.py); for arrays and ``json``, some microseconds per distinct
value.

Equal to ``json_exact``: tests/connectors/format/test_json_property.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from reclock.connectors.format import json_columns, lexical
from reclock.connectors.format.batch import Sure, Unsure
from reclock.connectors.format.fitting import fit
from reclock.connectors.format.lexical import Texts
from reclock.connectors.format.template import BARE, QUOTED, WHOLE, template_of
from reclock.sql.types import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from reclock.connectors.format.decoder import Field
    from reclock.connectors.format.template import Path, Template
    from reclock.sql.types import Type


def read_template(payloads: pa.Array, fields: tuple[Field, ...], strict: bool) -> Sure:
    """Return the columns of the records of one shape; ``strict`` allows no other members."""
    try:
        text = payloads.cast(pa.string())
    except pa.ArrowInvalid as error:  # not UTF-8
        raise Unsure from error
    wanted = dict(_paths((f.name, f.type) for f in fields))
    template = _shape(text, wanted)
    if strict and not template.paths <= wanted.keys():
        raise Unsure
    rows, inside = fit(text, template)
    filled = _Filled(template, {}, wanted, strict, np.ones(int(rows.sum()), np.bool_))
    try:
        filled.fill(inside)
        return filled.read(fields, rows)
    except (pa.ArrowInvalid, pl.exceptions.PolarsError) as error:
        raise Unsure from error


def _shape(text: pa.Array, wanted: Mapping[Path, Type]) -> Template:
    """Return the shape of the first record, or of another if that has none."""
    for at in (0, len(text) // 2, len(text) - 1):
        template = template_of(text[at].as_buffer().to_pybytes(), wanted)
        if template is not None:
            return template
    raise Unsure


def _paths(members: Iterable[tuple[str, Type]], within: Path = ()) -> Iterator[tuple[Path, Type]]:
    for name, kind in members:
        yield (*within, name), kind
        if isinstance(kind, Record):
            yield from _paths(kind.fields, (*within, name))


@dataclass(frozen=True, slots=True)
class _Filled:
    """A template, and what is in its holes in the records that fit; ``good`` narrows them."""

    template: Template
    holes: dict[Path, Texts]
    wanted: Mapping[Path, Type]
    strict: bool
    good: NDArray[np.bool_]

    def fill(self, inside: Iterable[pa.Array]) -> None:
        """Take what is in the holes, without escapes; narrow the records to the right ones."""
        for (path, form), column in zip(self.template.holes, inside, strict=True):
            texts = Texts.of(column)
            if form == QUOTED:
                texts, rows = lexical.unescaped(texts)
                self._narrow(rows)
            elif path not in self.wanted:
                right = lexical.bare if form == BARE else json_columns.values
                self._narrow(right(texts))
            self.holes[path] = texts

    def read(self, fields: tuple[Field, ...], rows: NDArray[np.bool_]) -> Sure:
        """Return the columns of the good records among ``rows``, which fit."""
        columns = tuple(self._column(f.type, f.arrow, (f.name,)) for f in fields)
        for column, field in zip(columns, fields, strict=True):
            if column.null_count and not field.nullable:
                self._narrow(np.asarray(column.is_valid()))
        if not self.good.all():
            good = pa.array(self.good)
            columns = tuple(column.filter(good) for column in columns)
            rows[rows] = self.good
        return Sure(columns, None if rows.all() else rows)

    def _column(self, kind: Type, arrow: pa.DataType, path: Path) -> pa.Array:
        texts = self.holes.get(path)
        if texts is not None:
            form = next(hole.form for hole in self.template.holes if hole.path == path)
            if form == WHOLE:
                column, rows = json_columns.whole(texts, kind, arrow, self.strict)
            else:
                convert = json_columns.quoted if form == QUOTED else json_columns.bare
                column, rows = convert(texts, kind)
            self._narrow(rows)
            return column if column.type == arrow else column.cast(arrow)
        if path not in self.template.objects:  # null, or missing
            return pa.nulls(len(self.good), arrow)
        if not isinstance(kind, Record):
            raise Unsure
        parts = [
            self._column(inside, arrow.field(at).type, (*path, name))
            for at, (name, inside) in enumerate(kind.fields)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(arrow))

    def _narrow(self, rows: NDArray[np.bool_] | None) -> None:
        if rows is not None:
            np.logical_and(self.good, rows, out=self.good)

"""Staging a source in tasks: exact ranges, decoded, arranged and written where they are read.

The ranges of a reading are dealt out to tasks. A task reads its ranges, decodes them, and cuts
what it reads into pieces (``piece``). It arranges the records of a piece by the key that divides
them among parts (``Graph.entry``), sorted by hash, and writes a run. The driver gets references and
counts: no record passes it. A run has the times of its ranges; where those are not known yet, the
tick that binds it says which (``changes.Stamped``).

Where records are rows, as they are without an envelope, and none has a fault, the run is
consolidated and made durable, in the layout of the source's collection: the tick that binds it
makes it a run of that collection, and it is not written again.

Rows of transactions wait in their runs until these are whole: the driver gets a summary of which
transactions they are (``transaction_runs``). Their files are durable, as a tick may publish that
they wait.

So do updates of CDCv2 until their times are closed: the driver gets their times, and what is no
update, word for word (``stated_runs``).

Records that a source skips are letters. The last of them, as many as a source keeps, are a run of
their own (``letters_keying``), in the same file.

A task that is lost or runs twice reads the same records and writes the same file; the name of a
run has its positions, so that equal records of other positions are another file. Other files are
not made durable: what was not bound before a crash is read again. One consumer per Python worker is
kept between jobs (``connectors.kafka.fetch``).

Tests: tests/dataflow/test_stage.py; on a cluster: tests/ingest/test_cluster.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import by_hash
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.connectors import letters
from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.dataflow.piece import Covered, Cutter, Piece
from reclock.dataflow.stated_runs import SUMMARY as STATED
from reclock.dataflow.transaction_runs import SUMMARY
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from reclock.arrangement.store import Store
    from reclock.dataflow.piece import Cut, Read
    from reclock.dataflow.stated_runs import StatedRuns
    from reclock.dataflow.transaction_runs import TransactionRuns
    from reclock.remap.batch import Range

    Batches = Sequence[pa.RecordBatch]

SLICE: Final = 500_000
"""About how many records a task reads."""

PLACES: Final = 2
"""The part and the offset come before the columns of a record."""

_WHOLE: Final = Description(at(0), at(1), at(0))


@cache
def letters_keying() -> Keying:
    """Return how the records that were skipped are arranged: by part and offset."""
    return Keying(tuple(letters.SCHEMA.types), (0, 1))


@dataclass(frozen=True)
class Skipping:
    """A source that skips: ``whose`` its messages are, and how many letters it keeps."""

    whose: str
    most: int
    most_bytes: int


@dataclass(frozen=True)
class Stager:
    """Reads and writes one source: ``faults`` are the columns in which a fault is not NULL.

    ``rows`` is how the collection lies, if records are its rows. A piece has ``most`` records.
    ``stops`` is the column of the fault that a source stops at; ``last`` leaves of some records
    those that count.
    """

    read: Read
    keying: Keying
    store: Store
    stem: str
    faults: tuple[int, ...]
    most: int = SLICE
    stops: int | None = None
    skipping: Skipping | None = None
    last: Callable[[Batches], Batches] | None = None
    rows: Keying | None = None
    reaches: tuple[str, Callable[[], object]] | None = None
    """What a task must reach, and a call that fails where it does not."""
    transactions: TransactionRuns | None = None
    """How rows of transactions are staged, of a source that has such."""
    stated: StatedRuns | None = None
    """How updates are staged that bring their times."""

    def staged(self, ranges: Sequence[Range]) -> Iterator[Piece]:
        """Read ranges into runs, piece by piece."""
        if self.stated is None:
            yield from map(self._written, Cutter(self.most, self.stops).cuts(self.read, ranges))
            return
        for cut in Cutter(self.most, self.stops).cuts(self._read_in_order, ranges):
            yield self._stated(cut, self.stated)

    def _read_in_order(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Read with the statements of a position together: progress is decoded after updates."""
        for batch in self.read(ranges):
            offsets = batch.column(1).to_numpy()
            is_ordered = bool((offsets[1:] >= offsets[:-1]).all())
            yield batch if is_ordered else batch.take(pa.array(np.argsort(offsets, kind="stable")))

    def _written(self, cut: Cut) -> Piece:
        """Write a piece."""
        covers: list[Covered] = []
        made: list[pa.RecordBatch] = []
        skipped: list[pa.RecordBatch] = []
        size = errors = 0
        for span, found in cut.records:
            batches: Batches = found
            rows = sum(map(len, batches))
            size += sum(batch.nbytes for batch in batches)
            errors += sum(
                len(batch) - batch.column(i).null_count for batch in batches for i in self.faults
            )
            gone: Batches = ()
            if self.skipping is not None:
                batches, gone = letters.parted(batches, self.skipping.whose)
                skipped += gone
            if self.last is not None:
                batches = self.last(batches)
            made += [_delta(batch, int(span.time)) for batch in batches if batch.num_rows]
            covers.append(Covered(span, rows, sum(map(len, gone))))
        kept = self._kept(skipped)
        covers = [c._replace(kept=_within(kept, c.range)) for c in covers] if skipped else covers
        names = [f"{part}@{start}" for (part, start, _, _), *_ in covers]
        is_rows = self.rows is not None and not errors
        durable = is_rows or self.transactions is not None
        with SegmentWriter(self.store, self.stem, durable=durable) as writer:
            if made and self.transactions is not None:
                staged, told = self.transactions.staged(deltas.union(made))
                _add(writer, f"staged {names[0]}", self.transactions.keying, staged)
                _add(writer, f"transactions {names[0]}", SUMMARY, told)
            elif made:
                _add(writer, f"staged {names[0]}", *self._arranged(made, is_rows=is_rows))
            if kept is not None:
                _add(writer, f"letters {names[0]}", letters_keying(), _by(letters_keying(), kept))
            refs = writer.finish()
        runs, others = refs[: len(made[:1])], refs[len(made[:1]) :]
        other = others[0] if others else None
        letter, summary = (other, None) if self.transactions is None else (None, other)
        return Piece(tuple(covers), runs, letter, size, errors, cut.fault, is_rows, summary)

    def _stated(self, cut: Cut, how: StatedRuns) -> Piece:
        """Write a piece of statements that bring their times."""
        covers = tuple(Covered(span, sum(map(len, found))) for span, found in cut.records)
        batches = [b for _, found in cut.records for b in found if b.num_rows]
        if not batches:
            return Piece(covers, fault=cut.fault)
        errors = sum(len(b) - b.column(i).null_count for b in batches for i in self.faults)
        (part, start, *_), *_ = covers[0]
        updates, told = how.staged(batches)
        runs = ((f"staged {part}@{start}", how.keying, updates),) if updates.num_rows else ()
        with SegmentWriter(self.store, self.stem) as writer:
            for run in (*runs, (f"stated {part}@{start}", STATED, told)):
                _add(writer, *run)
            *refs, summary = writer.finish()
        size = sum(batch.nbytes for batch in batches)
        return Piece(covers, tuple(refs), None, size, errors, cut.fault, summary=summary)

    def _arranged(self, made: Batches, *, is_rows: bool) -> tuple[Keying, pa.RecordBatch]:
        """Return how a piece lies, and its records or rows so."""
        whole = deltas.union(made)
        if not is_rows:
            return self.keying, _by(self.keying, whole)
        assert self.rows is not None
        rows = deltas.build(whole.columns[: len(self.rows.types)], *whole.columns[-2:])
        return self.rows, consolidate(self.rows.layout, self.rows.arrange(rows))

    def _kept(self, skipped: Batches) -> pa.RecordBatch | None:
        """Return the letters that may stay, as a delta."""
        if not skipped:
            return None
        assert self.skipping is not None
        whole = letters.last_of(skipped, self.skipping.most, self.skipping.most_bytes)
        return deltas.build(
            whole.columns, np.zeros(len(whole), np.int64), np.ones(len(whole), np.int64)
        )


@dataclass(frozen=True)
class Together:
    """Reads several relations in one job: ``of`` are their stagers, by the parts of the ranges."""

    of: Mapping[int | str, Stager]

    @property
    def _first(self) -> Stager:
        return next(iter(self.of.values()))

    @property
    def stem(self) -> str:
        """How the files that a job itself needs begin."""
        return self._first.stem

    @property
    def store(self) -> Store:
        """Where files are."""
        return self._first.store

    @property
    def reaches(self) -> tuple[str, Callable[[], object]] | None:
        """What a task must reach: all relations are in one place."""
        return self._first.reaches

    def staged(self, ranges: Sequence[Range]) -> Iterator[Piece]:
        """Read ranges into runs, relation by relation."""
        for part, some in groupby(ranges, lambda span: span.part):
            yield from self.of[part].staged([*some])


def _delta(batch: pa.RecordBatch, time: int) -> pa.RecordBatch:
    """Return records without their places, at a time."""
    columns = batch.columns[PLACES:]
    diff = columns.pop() if batch.schema.names[-1] == "diff" else np.ones(len(batch), np.int64)
    return deltas.build(columns, np.full(len(batch), time, np.int64), diff)


def _within(kept: pa.RecordBatch | None, span: Range) -> int:
    """Return how many letters are of a range."""
    if kept is None:
        return 0
    offsets = kept.column(1).to_numpy()
    here = kept.column(0).to_numpy(zero_copy_only=False) == str(span.part)
    return int((here & (offsets >= span.start) & (offsets < span.stop)).sum())


def _by(keying: Keying, delta: pa.RecordBatch) -> pa.RecordBatch:
    return by_hash(keying.arrange(delta))


def _add(writer: SegmentWriter, name: str, keying: Keying, updates: pa.RecordBatch) -> None:
    per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
    writer.add(name, keying.layout, [updates], _WHOLE, batch_rows=per_batch, dealt=True)

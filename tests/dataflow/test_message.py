"""Messages come as they were sent, through Arrow as Spark takes them, and are not copied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.job import message
from reclock.dataflow.job.message import (
    COUNTED,
    EXCHANGED,
    FINISHED,
    ROWS,
    Inbox,
    Message,
    Outbox,
    batches_of,
    packed,
    unpacked,
)
from reclock.dataflow.job.parts import Parts

PARTS = Parts(3)


def through_arrow(messages: list[Message]) -> Inbox:
    """Return what a task gets: batches as a stream, cut as Spark may cut them."""
    inbox = Inbox()
    for batch in batches_of(messages):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch.slice(0, 1))
            writer.write_batch(batch.slice(1))
        with pa.ipc.open_stream(sink.getvalue()) as reader:
            for got in reader:
                inbox.take(got)
    return inbox


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ROWS, EXCHANGED]), st.sampled_from("ab"),
            st.lists(st.none() | st.text(max_size=40), max_size=9),
        ),
        max_size=6,
    ),
    st.integers(1, 2_000),
    st.integers(1, 500),
)  # fmt: skip
def test_rows_come_in_the_order_in_which_they_were_sent(
    sent: list[tuple[int, str, list[str | None]]], alone: int, cut: int
) -> None:
    outbox = Outbox(1, PARTS)
    expected: dict[tuple[int, str], list[str | None]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "ALONE_BYTES", alone)
        patch.setattr(message, "BLOB_BYTES", cut)
        for kind, name, texts in sent:
            outbox.rows(kind, name, pa.record_batch({"x": pa.array(texts, pa.string())}))
            expected.setdefault((kind, name), []).extend(texts)
        outbox.put(COUNTED, "a", b"17")
        outbox.put(FINISHED, "a", b"")
        inbox = through_arrow(outbox.messages[::-1])
        inbox = through_arrow(list(inbox))  # and on to the next stage
    for (kind, name), texts in expected.items():
        found = [x for b in inbox.batches(kind, name) for x in b.column(0).to_pylist()]
        assert found == texts
    others = {m.kind: bytes(m.blob) for m in inbox.chosen(lambda kind, _: kind > ROWS)}
    assert others == {COUNTED: b"17", FINISHED: b""}


def test_large_bytes_are_not_copied() -> None:
    batch = pa.record_batch({"x": np.arange(200_000)})
    blob = packed(batch)
    (made,) = batches_of([Message(0, 0, 0, ROWS, "a", blob)])
    assert made.column(5).buffers()[2].address == blob.address
    inbox = Inbox()
    inbox.take(made)
    (got,) = inbox
    assert isinstance(got.blob, pa.Buffer)
    assert got.blob.address == blob.address
    (rows,) = unpacked(got.blob)
    assert blob.address < rows.column(0).buffers()[1].address < blob.address + len(blob)
    assert rows.equals(batch)

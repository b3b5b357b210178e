"""Messages as PostgreSQL 18 sent them, and messages that nobody sends."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Relation,
    RelationColumn,
    StreamAbort,
    StreamCommit,
    StreamStart,
    StreamStop,
    Truncate,
    decode,
)
from reclock.errors import Corrupt

BEGIN = b"B\x00\x00\x00\x00\x01oaP\x00\x03\x03\x86\xca\xb8\xbb\xa1\x00\x00\x02\xf3"
COMMIT = b"C\x00\x00\x00\x00\x00\x01oaP\x00\x00\x00\x00\x01oa\x80\x00\x03\x03\x86\xca\xb8\xbb\xa1"
RELATION = (
    b"R\x00\x00@\x08public\x00t\x00d\x00\x02\x01id\x00\x00\x00\x00\x14\xff\xff\xff\xff"
    b"\x00v\x00\x00\x00\x00\x19\xff\xff\xff\xff"
)
INSERT = b"I\x00\x00@\x08N\x00\x03t\x00\x00\x00\x012nu"


def test_what_a_server_sent():
    begin = decode(BEGIN)
    assert isinstance(begin, Begin)
    assert (begin.final, begin.xid) == (0x16F6150, 755)
    commit = decode(COMMIT)
    assert isinstance(commit, Commit)
    assert (commit.lsn, commit.end) == (0x16F6150, 0x16F6180)
    assert commit.micros == begin.micros
    assert decode(RELATION) == Relation(
        16392, "public", "t", "d",
        (RelationColumn("id", 20, -1, True), RelationColumn("v", 25, -1, False)),
    )  # fmt: skip
    assert decode(INSERT) == Change(16392, "I", None, (b"2", None, UNCHANGED))


def _tuple(*values):
    made = struct.pack("!H", len(values))
    for value in values:
        if value is None or value is UNCHANGED:
            made += b"n" if value is None else b"u"
        else:
            made += b"t" + struct.pack("!I", len(value)) + value
    return made


VALUES = st.one_of(st.none(), st.just(UNCHANGED), st.binary(max_size=20))
ROWS = st.lists(VALUES, max_size=4).map(tuple)


@given(ROWS, ROWS, st.sampled_from("KO"), st.integers(0, 2**32 - 1), st.booleans())
def test_changes_are_what_was_written(old, new, kind, xid, streamed):
    before = struct.pack("!I", xid) if streamed else b""
    head = before + struct.pack("!I", 7)
    told = xid if streamed else 0
    is_key = kind == "K"
    update = b"U" + head + kind.encode() + _tuple(*old) + b"N" + _tuple(*new)
    assert decode(update, streamed=streamed) == Change(7, "U", old, new, is_key, told)
    assert decode(b"U" + head + b"N" + _tuple(*new), streamed=streamed) == Change(
        7, "U", None, new, False, told
    )
    delete = b"D" + head + kind.encode() + _tuple(*old)
    assert decode(delete, streamed=streamed) == Change(7, "D", old, None, is_key, told)


def test_transactions_in_parts():
    assert decode(b"S" + struct.pack("!IB", 9, 1)) == StreamStart(9, True)
    assert decode(b"E") == StreamStop()
    assert decode(b"A" + struct.pack("!II", 9, 10)) == StreamAbort(9, 10)
    found = decode(b"c" + struct.pack("!IBQQq", 9, 0, 5, 6, 0))
    assert isinstance(found, StreamCommit)
    assert found[:3] == (9, 5, 6)
    truncate = b"T" + struct.pack("!IBII", 2, 0, 7, 8)
    assert decode(truncate) == Truncate((7, 8))


def test_what_is_not_needed_is_nothing():
    assert decode(b"Y\x00\x00@\x01public\x00mood\x00") is None
    assert decode(b"O" + bytes(8) + b"x\x00") is None


@given(st.binary(max_size=40))
def test_no_bytes_do_harm(data):
    with suppress(Corrupt):
        decode(data)


@pytest.mark.parametrize("whole", [BEGIN, COMMIT, RELATION, INSERT])
def test_a_message_that_is_cut_is_refused(whole):
    for size in range(1, len(whole)):
        with pytest.raises(Corrupt):
            decode(whole[:size])

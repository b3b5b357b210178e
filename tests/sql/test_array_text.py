"""Array literals: quotes, NULLs, arrays inside; anything else is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import StatementError
from reclock.rows.copy_text import text_of
from reclock.sql.plan.coerce import read_literal
from reclock.sql.types import BIGINT, TEXT, Array

NESTED = Array(Array(TEXT))


@given(st.lists(st.none() | st.lists(st.none() | st.text('a"\\{},\\ N', max_size=3), max_size=3)))
def test_what_is_written_is_read(value: list[list[str | None] | None]) -> None:
    inner = tuple(None if part is None else tuple(part) for part in value)
    written = "{" + ",".join("NULL" if p is None else text_of(p, Array(TEXT)) for p in inner) + "}"
    assert read_literal(written, NESTED) == inner


@pytest.mark.parametrize("text", ["", "{", "{1", "1}", "{1}x", "{,}", '{"1}', "{1,}", "{{1}}"])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(StatementError) as caught:
        read_literal(text, Array(BIGINT))
    assert caught.value.code == "22P02"


@given(st.text('{}",\\ a', max_size=10))
def test_random_text_never_crashes(text: str) -> None:
    with suppress(StatementError):
        read_literal(text, NESTED)

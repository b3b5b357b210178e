"""A column of moments in a zone is what each of them is by itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.server.codec import text
from reclock.server.codec.rows import data_rows
from reclock.sql import types as t
from reclock.sql.zone import in_zone

ZONES = ["Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "<-07>+07"]
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
NEAR = st.integers(0, 7_200).map(  # around a change of clocks in Berlin
    lambda second: datetime.fromtimestamp(1_792_886_400 + second, UTC)
)


@pytest.mark.parametrize("zone", ZONES)
@given(values=st.lists(st.none() | MOMENTS | NEAR, max_size=20))
def test_a_column_is_its_values(zone: str, values: list[datetime | None]) -> None:
    batch = pa.record_batch([pa.array(values, pa.timestamp("us", "UTC"))], ["at"])
    wanted = b""
    with in_zone(zone):
        for value in values:
            data = None if value is None else text.write(value, t.TIMESTAMPTZ).encode()
            field = b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data
            wanted += b"D" + (6 + len(field)).to_bytes(4, "big") + b"\0\1" + field
        assert data_rows(batch, [t.TIMESTAMPTZ], [0]) == wanted
